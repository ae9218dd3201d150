"""Checks and mends what is kept of a workspace's graph."""

from collections.abc import Mapping, Sequence

from app.db.base import TenantId, WorkspaceId
from app.db.models import EntityChange
from app.db.session import Database
from app.domain.entities.changes import EntityChanges
from app.domain.entities.repository import ChangeRepository
from app.domain.entities.service import EntityService
from app.domain.ingestion.repository import bump
from app.retrieval.contract import EngineWorkspace, Lease
from app.retrieval.entity_graph_contract import GraphCheck

# Beside the kinds of drift: changes that are being written to a graph without transactions, or were stopped at it.
UNFINISHED = "unfinished_changes"


class GraphChecking:
    def __init__(self, database: Database, browsing: EntityService, changes: EntityChanges, graph: GraphCheck) -> None:
        self._database = database
        self._browsing = browsing
        self._changes = changes
        self._graph = graph

    async def check(self, tenant_id: TenantId, workspace_id: WorkspaceId) -> Mapping[str, int]:
        """Names by kind of drift, and unfinished changes. Raises WorkspaceNotFound or EngineOff."""
        return await self._check(await self._browsing.open(tenant_id, workspace_id))

    async def mend(self, tenant_id: TenantId, workspace_id: WorkspaceId) -> Mapping[str, int]:
        """What is left after mending. Raises WorkspaceBusy, and UndoBlocked where the model's answers are gone."""
        workspace = await self._browsing.open(tenant_id, workspace_id)
        for change in await self._unfinished(workspace):
            await self._changes.put_back(workspace, change)

        async def work(lease: Lease) -> object:
            return await self._graph.mend(workspace, lease, companions=[bump(workspace.ref)])

        await self._changes.under_lease(workspace, work)
        return await self._check(workspace)

    async def _check(self, workspace: EngineWorkspace) -> Mapping[str, int]:
        drift = await self._graph.check(workspace)
        return {**drift, UNFINISHED: len(await self._unfinished(workspace))}

    async def _unfinished(self, workspace: EngineWorkspace) -> Sequence[EntityChange]:
        async with self._database.tenant(workspace.ref.tenant_id) as session:
            return await ChangeRepository(session).unfinished(workspace.ref.workspace_id)
