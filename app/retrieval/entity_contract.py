"""What domain code and the graph engine say to each other about entities: browsing, merging, aliases. No I/O here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from app.retrieval.contract import EngineWorkspace, Lease, RelationEvidence, Statement
from app.retrieval.errors import AliasNotFound, AliasTaken, EntityNotFound, InvalidAlias, InvalidMerge

# Handed on: whoever uses the protocol meets its errors.
__all__ = ["AliasNotFound", "AliasTaken", "EntityNotFound", "InvalidAlias", "InvalidMerge"]


@dataclass(frozen=True)
class EntitySummary:
    """An entity in a list. `degree` counts its relations."""

    name: str
    type: str
    description: str
    degree: int


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


@dataclass(frozen=True)
class MergeRequest:
    """Merge `sources` into `target`, which is created if it does not exist."""

    sources: tuple[str, ...]
    target: str


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
        companions: Sequence[Statement] = (),
    ) -> EntityDetail:
        """The merged entity; `companions` and the aliases of it go in with the merge, so the sources do not come back.

        Raises `EntityNotFound` or `InvalidMerge` before anything is changed.
        """
        ...

    async def aliases(self, workspace: EngineWorkspace, *, after: str | None, limit: int) -> Sequence[EntityAlias]:
        """In code point order of the alias, from the first after `after`."""
        ...

    async def add_alias(
        self,
        workspace: EngineWorkspace,
        alias: str,
        target: str,
        lease: Lease,
        *,
        companions: Sequence[Statement] = (),
    ) -> EntityAlias:
        """From now on documents and questions that say `alias` mean `target`. Raises `InvalidAlias` or `AliasTaken`."""
        ...

    async def remove_alias(
        self, workspace: EngineWorkspace, alias: str, lease: Lease, *, companions: Sequence[Statement] = ()
    ) -> None:
        """From now on the name stands for itself; what it brought to its target stays there. Raises `AliasNotFound`."""
        ...
