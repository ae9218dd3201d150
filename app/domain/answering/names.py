"""The names under which clients of OpenAI's interface know workspaces: `acme-handbook:lazy-wide`, one a mode.

The part before the colon is the workspace's name in small letters and digits of any script, with a hyphen for all else.
Where two workspaces of a tenant come to the same name neither has it: a name never changes its corpus without a word. The
workspace's id is always accepted in its place, and survives a renaming.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.db.base import WorkspaceId
from app.domain.answering.errors import ModelNameUnknown
from app.retrieval.contract import MODES
from app.retrieval.routing import AUTO
from app.text.slugs import slug


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


def split_name(text: str) -> tuple[str, UUID | None, str]:
    """What a model is called by: the workspace's name (empty where no workspace can have it), its id where that is one,
    and the mode."""
    label, _, mode = text.rpartition(":")
    return label if label == slug(label) else "", UUID(label) if _is_id(label) else None, mode


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
    """The workspace and mode of a name, looked for among `workspaces`.

    Whether the workspace has the mode's engine is left to the query. Raises ModelNameUnknown, for a name that two workspaces share as well.
    """
    label, workspace_id, mode = split_name(text)
    named = [each for each in workspaces if (each.id == workspace_id if workspace_id else label == slug(each.name))]
    named = named if label else []
    if not named or mode not in (*MODES, AUTO):
        raise ModelNameUnknown(f"There is no model {text[:300]!r}; GET /v1/openai/models lists those there are.")
    if len(named) > 1:
        ids = " or ".join(f"{workspace.id}:{mode}" for workspace in named)
        raise ModelNameUnknown(f"{len(named)} workspaces are called {label!r}; say which one you mean: {ids}.")
    return ModelName(named[0], mode, label)


def _labels(workspaces: Sequence[NamedWorkspace]) -> dict[WorkspaceId, str]:
    slugs = {workspace.id: slug(workspace.name) for workspace in workspaces}
    shared = Counter(slugs.values())
    return {key: name if name and shared[name] == 1 and not _is_id(name) else str(key) for key, name in slugs.items()}


def _is_id(label: str) -> bool:
    try:
        return str(UUID(label)) == label
    except ValueError:
        return False
