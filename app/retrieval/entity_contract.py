"""What domain code and the graph engine say to each other about entities: browsing, merging, aliases. No I/O here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol
from uuid import UUID, uuid4

from app.retrieval.contract import EngineWorkspace, Lease, RelationEvidence, Statement
from app.retrieval.errors import (
    AliasNotFound,
    AliasTaken,
    ChangeNotFound,
    EntityNotFound,
    InvalidAlias,
    InvalidMerge,
    RemovedWithDocuments,
    UndoBlocked,
)

# Handed on: whoever uses the protocol meets its errors.
__all__ = [
    "AliasNotFound",
    "AliasTaken",
    "ChangeNotFound",
    "EntityNotFound",
    "InvalidAlias",
    "InvalidMerge",
    "RemovedWithDocuments",
    "UndoBlocked",
]


@dataclass(frozen=True)
class EntitySummary:
    """An entity in a list. `degree` counts its relations; `key` is a name of it that is never long."""

    name: str
    type: str
    description: str
    degree: int
    key: str = ""


@dataclass(frozen=True)
class EntityDetail:
    """An entity with its relations and the chunks that speak of it, as (version, chunk ordinal)."""

    name: str
    type: str
    description: str
    relations: tuple[RelationEvidence, ...]
    chunks: tuple[tuple[UUID, int], ...]


AliasSource = Literal["merge", "manual"]


@dataclass(frozen=True)
class EntityAlias:
    """A name that means another: `target` is the name of an entity, or an alias again."""

    alias: str
    target: str
    source: AliasSource
    created_at: datetime


EntityField = Literal["type", "description"]
Strategy = Literal["concatenate", "keep_target", "keep_first", "keep_last", "longest"]
# What a merge does by itself. A type is one word, so that of the target stays unless nothing is known of it.
DEFAULT_STRATEGIES: Mapping[EntityField, Strategy] = {"type": "keep_target", "description": "concatenate"}


@dataclass(frozen=True)
class MergeRequest:
    """Merge `sources` into `target`, which is created if it does not exist. A value stands instead of any strategy."""

    sources: tuple[str, ...]
    target: str
    strategies: Mapping[EntityField, Strategy] = field(default_factory=dict)
    values: Mapping[EntityField, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MergedRelation:
    """A relation as a merge leaves it, and those that became it; `chunks` counts the distinct chunks behind it."""

    source: str
    target: str
    weight: float
    chunks: int
    merged_from: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MergePreview:
    """What a merge would do: the entity, all its relations, and those that would have joined it to itself."""

    name: str
    type: str
    description: str
    is_new: bool
    chunks: int
    relations: tuple[MergedRelation, ...]
    avoided_self_loops: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ChangeRecord:
    """The row of the history that a change writes, or finishes if it `is_queued`, in its own transaction."""

    id: UUID = field(default_factory=uuid4)
    request: Mapping[str, Any] = field(default_factory=dict)
    actor: str | None = None
    request_key: bytes | None = None
    is_queued: bool = False


class Entities(Protocol):
    """Browses and changes the entities of a workspace's graph."""

    async def list(
        self, workspace: EngineWorkspace, *, prefix: str | None, after: str | None, limit: int
    ) -> Sequence[EntitySummary]:
        """Entities by name, in code point order, from the first after `after`."""
        ...

    async def get(self, workspace: EngineWorkspace, name: str) -> EntityDetail:
        """Raises `EntityNotFound`."""
        ...

    async def merge(
        self,
        workspace: EngineWorkspace,
        request: MergeRequest,
        lease: Lease,
        *,
        record: ChangeRecord | None = None,
        companions: Sequence[Statement] = (),
    ) -> EntityDetail:
        """The merged entity; `companions` and the aliases of it go in with the merge, so the sources do not come back.

        Raises `EntityNotFound` or `InvalidMerge` before anything is changed.
        """
        ...

    async def preview_merge(self, workspace: EngineWorkspace, request: MergeRequest) -> MergePreview:
        """What `merge` would do now. Raises what it would."""
        ...

    async def count_relations(self, workspace: EngineWorkspace, names: Sequence[str]) -> int:
        """How many relations these entities have together; those that are not there have none."""
        ...

    async def names_of(self, workspace: EngineWorkspace, name: str) -> Sequence[str]:
        """The name, as the graph keeps it, what it means by now, and all that means the same."""
        ...

    async def undo(
        self,
        workspace: EngineWorkspace,
        change_id: UUID,
        lease: Lease,
        *,
        record: ChangeRecord | None = None,
        companions: Sequence[Statement] = (),
    ) -> tuple[str, ...]:
        """Make the graph what it would be had the change not been made, and name the entities that it concerned.

        Raises `ChangeNotFound`, or `UndoBlocked` with what stands in the way and nothing changed.
        """
        ...

    async def put_back(
        self,
        workspace: EngineWorkspace,
        change_id: UUID,
        names: Sequence[str],
        lease: Lease,
        *,
        companions: Sequence[Statement] = (),
    ) -> None:
        """Make of these entities what they were before a change that was stopped while it was `writing`.

        Raises `UndoBlocked` where the model's answers are gone.
        """
        ...

    async def aliases(self, workspace: EngineWorkspace, *, after: str | None, limit: int) -> Sequence[EntityAlias]:
        """In code point order of the alias, from the first after `after`."""
        ...
