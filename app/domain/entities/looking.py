"""Looks around in a workspace's graph, and finds entities that may be one."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.domain.entities.changes import EntityChanges, Merged, Requested
from app.domain.entities.rejections_repository import InvalidRejection, RejectionRepository
from app.domain.entities.service import EntityService
from app.errors import AppError, Unavailable
from app.retrieval.contract import EntityEvidence, RelationEvidence
from app.retrieval.entity_contract import MergeRequest
from app.retrieval.entity_graph_contract import DuplicateGroup, EntityGraph, EntityMention, FoundName, Surroundings

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


class EntityLooking:
    """Every method raises WorkspaceNotFound and EngineOff, and what `EntityGraph` says."""

    def __init__(self, database: Database, browsing: EntityService, changes: EntityChanges, graph: EntityGraph) -> None:
        self._database = database
        self._browsing = browsing
        self._changes = changes
        self._graph = graph

    async def search(self, place: Place, text: str, *, limit: int) -> Sequence[FoundName]:
        return await self._graph.search(await self._browsing.open(*place), text, limit=limit)

    async def mentions(self, place: Place, name: str, *, after: int, limit: int) -> Sequence[EntityMention]:
        return await self._graph.mentions(await self._browsing.open(*place), name, after=after, limit=limit)

    async def neighbours(self, place: Place, name: str, *, depth: int, limit: int) -> Surroundings:
        return await self._graph.neighbours(await self._browsing.open(*place), name, depth=depth, limit=limit)

    async def paths(
        self, place: Place, source: str, target: str, *, longest: int, limit: int
    ) -> Sequence[tuple[str, ...]]:
        workspace = await self._browsing.open(*place)
        return await self._graph.paths(workspace, source, target, longest=longest, limit=limit)

    async def export(self, place: Place) -> AsyncIterator[EntityEvidence | RelationEvidence]:
        """The workspace is looked up before the first item is asked for."""
        return self._graph.export(await self._browsing.open(*place))

    async def duplicates(self, place: Place, *, min_score: float, limit: int) -> Sequence[DuplicateGroup]:
        workspace = await self._browsing.open(*place)
        async with self._database.tenant(place[0]) as session:
            apart = await RejectionRepository(session).pairs(place[1])
        return await self._graph.duplicates(workspace, min_score=min_score, apart=apart, limit=limit)

    async def merge_duplicates(
        self, place: Place, by: Requested, *, min_score: float, limit: int
    ) -> list[GroupMerged | GroupRefused]:
        """Merge the best groups of at least this score, each into the entity of it that has most relations.

        Tells of every group what became of it. Once something that it needs is away the rest is refused without a try;
        if that is so from the first group on, it is raised: WorkspaceBusy, for example.
        """
        outcomes: list[GroupMerged | GroupRefused] = []
        away: Unavailable | None = None
        for group in await self.duplicates(place, min_score=min_score, limit=limit):
            if away is not None:
                outcomes.append(GroupRefused(group.names, away.reason, away.detail))
                continue
            try:
                outcomes.append(await self._merge_group(place, by, group.names))
            except Unavailable as error:
                if not outcomes:
                    raise
                away = error
                outcomes.append(GroupRefused(group.names, error.reason, error.detail))
            except AppError as error:
                outcomes.append(GroupRefused(group.names, error.reason, error.detail))
        return outcomes

    async def _merge_group(self, place: Place, by: Requested, names: tuple[str, ...]) -> GroupMerged:
        made = await self._changes.merge(*place, MergeRequest(names[1:], names[0]), Requested(by.actor))
        if isinstance(made, Merged):
            return GroupMerged(names, made.entity.name, made.change_id, is_queued=False)
        return GroupMerged(names, names[0], made.id, is_queued=True)

    async def reject(self, place: Place, one: str, other: str) -> tuple[str, str]:
        """These are different things, and are not proposed again. Raises EntityNotFound, InvalidRejection."""
        first, second = [(await self._browsing.get(*place, name)).name for name in (one, other)]
        if first == second:
            raise InvalidRejection("Both names mean the same entity.")
        async with self._database.tenant(place[0]) as session:
            await RejectionRepository(session).add(place[1], first, second)
        return first, second

    async def rejected(self, place: Place) -> Sequence[tuple[str, str]]:
        await self._browsing.open(*place)
        async with self._database.tenant(place[0]) as session:
            return await RejectionRepository(session).list(place[1])

    async def forget_rejection(self, place: Place, one: str, other: str) -> None:
        """They may be proposed again; no-op if they were not rejected."""
        ones, others = await self._browsing.names_of(*place, one), await self._browsing.names_of(*place, other)
        async with self._database.tenant(place[0]) as session:
            await RejectionRepository(session).remove(place[1], ones, others)
