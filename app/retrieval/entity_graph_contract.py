"""What domain code and the graph engine say to each other about looking around in a graph, and about duplicates."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from app.retrieval.contract import EngineWorkspace, EntityEvidence, Lease, RelationEvidence, Statement


@dataclass(frozen=True)
class FoundName:
    """An entity whose name is like what was looked for; 1.0 is the very name."""

    name: str
    score: float


@dataclass(frozen=True)
class Surroundings:
    """Entities around one, each with its distance in relations; `is_cut` if a limit left something out."""

    entities: tuple[tuple[EntityEvidence, int], ...]
    relations: tuple[RelationEvidence, ...]
    is_cut: bool


@dataclass(frozen=True)
class Paths:
    """Ways between two entities, as the names on them; `is_cut` if a limit left relations unread."""

    paths: tuple[tuple[str, ...], ...]
    is_cut: bool = False


@dataclass(frozen=True)
class EntityMention:
    """What one chunk said of an entity, or of its relation to `target`."""

    id: int
    document_id: UUID
    version_id: UUID
    chunk_ordinal: int
    name: str
    target: str | None
    description: str
    keywords: str | None


@dataclass(frozen=True)
class DuplicatePair:
    """Two entities that may be one, with what speaks for it: kinds of likeness of the names first, then the graph's."""

    one: str
    other: str
    score: float
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class DuplicateGroup:
    """Entities that may be one. `names` by their relations, most first: the first is proposed as the target.

    `types`: the different ones that are known of them. `is_accepted` if people said so of all of them.
    """

    names: tuple[str, ...]
    score: float
    pairs: tuple[DuplicatePair, ...]
    types: tuple[str, ...] = ()
    is_accepted: bool = False


Pairs = frozenset[frozenset[str]]


@dataclass(frozen=True)
class Decisions:
    """What people said of pairs of entities, under any of their names: the same thing, or things to be kept apart."""

    same: Pairs = frozenset()
    apart: Pairs = frozenset()


class EntityGraph(Protocol):
    """Reads around in a workspace's graph; only what trusted versions or people stand behind is shown."""

    async def search(self, workspace: EngineWorkspace, text: str, *, limit: int) -> Sequence[FoundName]:
        """Entities whose names are like `text`, in any script, with errors; best first."""
        ...

    async def mentions(
        self, workspace: EngineWorkspace, name: str, *, after: int, limit: int
    ) -> Sequence[EntityMention]:
        """What chunks said, oldest first, from the first after id `after`. Raises `EntityNotFound`."""
        ...

    async def neighbours(self, workspace: EngineWorkspace, name: str, *, depth: int, limit: int) -> Surroundings:
        """Up to `limit` entities within `depth` relations. Raises `EntityNotFound`."""
        ...

    async def paths(self, workspace: EngineWorkspace, source: str, target: str, *, longest: int, limit: int) -> Paths:
        """Up to `limit` of the shortest paths of at most `longest` relations. Raises `EntityNotFound`."""
        ...

    def export(self, workspace: EngineWorkspace) -> AsyncIterator[EntityEvidence | RelationEvidence]:
        """All entities by name, then all relations, read page by page."""
        ...

    async def duplicates(
        self, workspace: EngineWorkspace, *, min_score: float | None, decisions: Decisions, limit: int
    ) -> Sequence[DuplicateGroup]:
        """Groups that may be one entity, best first; without `min_score` only what people said is one.

        No group holds two names of a pair that is to be kept apart, whatever the names have been merged into since.
        """
        ...


class GraphCheck(Protocol):
    """Compares everything that is kept of a workspace's graph, and derives again what does not agree."""

    async def check(self, workspace: EngineWorkspace) -> Mapping[str, int]:
        """How many names there are of each kind of drift; 0 everywhere if all agrees."""
        ...

    async def mend(
        self, workspace: EngineWorkspace, lease: Lease, *, companions: Sequence[Statement] = ()
    ) -> Mapping[str, int]:
        """Mend it in one write; what is left then, as `check` counts it. Raises `UndoBlocked` where answers are gone."""
        ...
