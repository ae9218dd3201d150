"""Looks around in a workspace's graph."""

from collections.abc import AsyncIterator, Sequence

from app.db.base import TenantId, WorkspaceId
from app.domain.entities.service import EntityService
from app.retrieval.contract import EntityEvidence, RelationEvidence
from app.retrieval.entity_graph_contract import (
    EntityGraph,
    EntityMention,
    FoundName,
    Paths,
    Surroundings,
)

Place = tuple[TenantId, WorkspaceId]


class EntityLooking:
    """Every method raises WorkspaceNotFound and EngineOff, and what `EntityGraph` says."""

    def __init__(self, browsing: EntityService, graph: EntityGraph) -> None:
        self._browsing = browsing
        self._graph = graph

    async def search(self, place: Place, text: str, *, limit: int) -> Sequence[FoundName]:
        return await self._graph.search(await self._browsing.open(*place), text, limit=limit)

    async def mentions(self, place: Place, name: str, *, after: int, limit: int) -> Sequence[EntityMention]:
        return await self._graph.mentions(await self._browsing.open(*place), name, after=after, limit=limit)

    async def neighbours(self, place: Place, name: str, *, depth: int, limit: int) -> Surroundings:
        return await self._graph.neighbours(await self._browsing.open(*place), name, depth=depth, limit=limit)

    async def paths(self, place: Place, source: str, target: str, *, longest: int, limit: int) -> Paths:
        workspace = await self._browsing.open(*place)
        return await self._graph.paths(workspace, source, target, longest=longest, limit=limit)

    async def export(self, place: Place) -> AsyncIterator[EntityEvidence | RelationEvidence]:
        """The workspace is looked up before the first item is asked for."""
        return self._graph.export(await self._browsing.open(*place))
