"""The names under which clients of OpenAI's interface know workspaces: `acme-handbook:lazy-wide`, one a mode.

The part before the colon is the workspace's name in small letters and digits of any script, with a hyphen for all else.
Where two workspaces of a tenant come to the same name neither has it: a name never changes its corpus without a word. The
workspace's id is always accepted in its place, and survives a renaming.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.db.base import WorkspaceId
from app.domain.answering.errors import ModelNameUnknown
from app.retrieval.contract import MODES
from app.retrieval.routing import AUTO

_NOT_IN_NAMES = re.compile(r"[^\w]+|_+")


@dataclass(frozen=True)
class NamedWorkspace:
    """What of a workspace its names are made from."""

    id: WorkspaceId
    name: str
    engines: tuple[str, ...]
    created_at: datetime
    chat_model: str | None = None


@dataclass(frozen=True)
class ModelName:
    """A workspace and a mode, as one name."""

    workspace: NamedWorkspace
    mode: str
    label: str

    def __str__(self) -> str:
        return f"{self.label}:{self.mode}"


def slug(name: str) -> str:
    """`name` in small letters and digits, hyphens between them; empty for one without letters and digits."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return _NOT_IN_NAMES.sub("-", unicodedata.normalize("NFC", plain)).strip("-")


def all_names(workspaces: Sequence[NamedWorkspace]) -> list[ModelName]:
    """One a workspace and mode that it answers, in the order of the workspaces."""
    labels = _labels(workspaces)
    return [
        ModelName(workspace, mode, labels[workspace.id])
        for workspace in workspaces
        for mode in (*MODES, AUTO)
        if mode == AUTO or MODES[mode] in workspace.engines
    ]


def find_name(text: str, workspaces: Sequence[NamedWorkspace]) -> ModelName:
    """The workspace and mode of a name; whether the workspace has the mode's engine is left to the query.

    Raises ModelNameUnknown, for a name that two workspaces share as well.
    """
    label, _, mode = text.rpartition(":")
    named = [workspace for workspace in workspaces if _is_called(label, workspace)]
    if not named or mode not in (*MODES, AUTO):
        raise ModelNameUnknown(f"There is no model {text[:300]!r}; GET /v1/openai/models lists those there are.")
    if len(named) > 1:
        ids = " or ".join(f"{workspace.id}:{mode}" for workspace in named)
        raise ModelNameUnknown(f"{len(named)} workspaces are called {label!r}; say which one you mean: {ids}.")
    return ModelName(named[0], mode, label)


def _is_called(label: str, workspace: NamedWorkspace) -> bool:
    if _is_id(label):
        return UUID(label) == workspace.id
    return bool(label) and label == slug(workspace.name)


def _labels(workspaces: Sequence[NamedWorkspace]) -> dict[WorkspaceId, str]:
    slugs = {workspace.id: slug(workspace.name) for workspace in workspaces}
    shared = Counter(slugs.values())
    return {key: name if name and shared[name] == 1 and not _is_id(name) else str(key) for key, name in slugs.items()}


def _is_id(label: str) -> bool:
    try:
        return str(UUID(label)) == label
    except ValueError:
        return False
