"""Browses the entities of a workspace's graph."""

from collections.abc import Sequence

from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.domain.workspaces.opening import WorkspaceOpener
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.retrieval.contract import EngineOff, EngineWorkspace
from app.retrieval.entity_contract import Entities, EntityAlias, EntityDetail, EntitySummary


class EntityService:
    def __init__(self, database: Database, workspaces: WorkspaceOpener, entities: Entities) -> None:
        self._database = database
        self._workspaces = workspaces
        self._entities = entities

    async def list(
        self,
        tenant_id: TenantId,
        workspace_id: WorkspaceId,
        *,
        prefix: str | None,
        after: str | None,
        limit: int,
    ) -> Sequence[EntitySummary]:
        """By name, from the first after `after`. Raises WorkspaceNotFound or EngineOff."""
        workspace = await self.open(tenant_id, workspace_id)
        return await self._entities.list(workspace, prefix=prefix, after=after, limit=limit)

    async def get(self, tenant_id: TenantId, workspace_id: WorkspaceId, name: str) -> EntityDetail:
        """Raises WorkspaceNotFound, EngineOff or EntityNotFound."""
        return await self._entities.get(await self.open(tenant_id, workspace_id), name)

    async def names_of(self, tenant_id: TenantId, workspace_id: WorkspaceId, name: str) -> Sequence[str]:
        """`Entities.names_of`. Raises WorkspaceNotFound or EngineOff."""
        return await self._entities.names_of(await self.open(tenant_id, workspace_id), name)

    async def aliases(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, *, after: str | None, limit: int
    ) -> Sequence[EntityAlias]:
        """By alias, from the first after `after`. Raises WorkspaceNotFound or EngineOff."""
        workspace = await self.open(tenant_id, workspace_id)
        return await self._entities.aliases(workspace, after=after, limit=limit)

    async def open(self, tenant_id: TenantId, workspace_id: WorkspaceId) -> EngineWorkspace:
        """Raises WorkspaceNotFound, WorkspaceDeleting or EngineOff."""
        async with self._database.tenant(tenant_id) as session:
            record = await WorkspaceRepository(session).get(workspace_id)
        refuse_deleting(record.row)
        if "graph" not in record.row.engines:
            raise EngineOff("Entities belong to the graph, which this workspace does not have.", engine="graph")
        return await self._workspaces.engine_workspace(record)
