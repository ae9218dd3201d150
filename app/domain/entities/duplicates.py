"""Entities that may be one: proposals, what people decide about them, and merging what is sure enough."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from uuid import UUID

from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.domain.entities.changes import EntityChanges, Merged, Requested
from app.domain.entities.decisions_repository import DecisionRepository, InvalidDecision
from app.domain.entities.service import EntityService
from app.errors import AppError, Unavailable
from app.retrieval.entity_contract import MergeRequest
from app.retrieval.entity_graph_contract import DuplicateGroup, EntityGraph

Place = tuple[TenantId, WorkspaceId]


@dataclass(frozen=True)
class GroupMerged:
    """A group of duplicates that became `name`, or will by a worker's hand."""

    names: tuple[str, ...]
    name: str
    change_id: UUID
    is_queued: bool


@dataclass(frozen=True)
class GroupRefused:
    """A group of duplicates of which nothing was merged, and why."""

    names: tuple[str, ...]
    code: str
    detail: str


class EntityDuplicates:
    """Every method raises WorkspaceNotFound and EngineOff."""

    def __init__(self, database: Database, browsing: EntityService, changes: EntityChanges, graph: EntityGraph) -> None:
        self._database = database
        self._browsing = browsing
        self._changes = changes
        self._graph = graph

    async def propose(
        self, place: Place, *, min_score: float | None, limit: int, with_accepted: bool = True
    ) -> Sequence[DuplicateGroup]:
        """Best first; without `min_score` only what was accepted. Not `with_accepted`, entities count as alike by what
        the graph says of them alone."""
        workspace = await self._browsing.open(*place)
        async with self._database.tenant(place[0]) as session:
            decisions = await DecisionRepository(session).all(place[1])
        if not with_accepted:
            decisions = replace(decisions, same=frozenset())
        return await self._graph.duplicates(workspace, min_score=min_score, decisions=decisions, limit=limit)

    async def merge(
        self, place: Place, by: Requested, *, min_score: float | None, limit: int
    ) -> list[GroupMerged | GroupRefused]:
        """Merge the groups that `propose` gives, each into the entity of it that has most relations.

        Tells of every group what became of it. Once something that it needs is away the rest is refused without a try;
        if that is so from the first group on, it is raised: WorkspaceBusy, for example.
        """
        groups = await self.propose(place, min_score=min_score, limit=limit)
        return await self.merge_groups(place, by, [group.names for group in groups])

    async def merge_groups(
        self, place: Place, by: Requested, groups: Sequence[tuple[str, ...]]
    ) -> list[GroupMerged | GroupRefused]:
        """As `merge`; the first of each group's names stays."""
        outcomes: list[GroupMerged | GroupRefused] = []
        away: Unavailable | None = None
        for names in groups:
            if away is not None:
                outcomes.append(GroupRefused(names, away.reason, away.detail))
                continue
            try:
                outcomes.append(await self._merge_group(place, by, names))
            except Unavailable as error:
                if not outcomes:
                    raise
                away = error
                outcomes.append(GroupRefused(names, error.reason, error.detail))
            except AppError as error:
                outcomes.append(GroupRefused(names, error.reason, error.detail))
        return outcomes

    async def _merge_group(self, place: Place, by: Requested, names: tuple[str, ...]) -> GroupMerged:
        made = await self._changes.merge(*place, MergeRequest(names[1:], names[0]), Requested(by.actor))
        if isinstance(made, Merged):
            return GroupMerged(names, made.entity.name, made.change_id, is_queued=False)
        return GroupMerged(names, names[0], made.id, is_queued=True)

    async def decide(self, place: Place, names: Sequence[str], *, is_same: bool) -> tuple[str, ...]:
        """Remember of these entities that they are one thing, or all different ones; what was said before is replaced.

        Returns the entities. Raises EntityNotFound, InvalidDecision and TooManyDecisions.
        """
        meant = tuple(dict.fromkeys([(await self._browsing.get(*place, name)).name for name in names]))
        if len(meant) < len(names):
            raise InvalidDecision("Two of the names mean the same entity.")
        async with self._database.tenant(place[0]) as session:
            repository = DecisionRepository(session)
            for one, other in combinations(meant, 2):
                await repository.put(place[1], one, other, is_same=is_same)
        return meant

    async def decided(self, place: Place, *, is_same: bool) -> Sequence[tuple[str, str]]:
        await self._browsing.open(*place)
        async with self._database.tenant(place[0]) as session:
            return await DecisionRepository(session).list(place[1], is_same=is_same)

    async def forget(self, place: Place, one: str, other: str, *, is_same: bool) -> None:
        """As if it had not been decided; no-op if it was not."""
        ones, others = await self._browsing.names_of(*place, one), await self._browsing.names_of(*place, other)
        async with self._database.tenant(place[0]) as session:
            await DecisionRepository(session).remove(place[1], ones, others, is_same=is_same)
