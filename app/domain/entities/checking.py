"""Checks and mends what is kept of a workspace's graph."""

from collections.abc import Mapping

from app.db.base import TenantId, WorkspaceId
from app.domain.entities.changes import EntityChanges
from app.domain.entities.service import EntityService
from app.domain.ingestion.repository import bump
from app.retrieval.contract import Lease
from app.retrieval.entity_graph_contract import GraphCheck


class GraphChecking:
    def __init__(self, browsing: EntityService, changes: EntityChanges, graph: GraphCheck) -> None:
        self._browsing = browsing
        self._changes = changes
        self._graph = graph

    async def check(self, tenant_id: TenantId, workspace_id: WorkspaceId) -> Mapping[str, int]:
        """Names by kind of drift. Raises WorkspaceNotFound or EngineOff."""
        return await self._graph.check(await self._browsing.open(tenant_id, workspace_id))

    async def mend(self, tenant_id: TenantId, workspace_id: WorkspaceId) -> Mapping[str, int]:
        """What is left after mending. Raises WorkspaceBusy, and UndoBlocked where the model's answers are gone."""
        workspace = await self._browsing.open(tenant_id, workspace_id)

        async def work(lease: Lease) -> Mapping[str, int]:
            return await self._graph.mend(workspace, lease, companions=[bump(workspace.ref)])

        return await self._changes.under_lease(workspace, work)
