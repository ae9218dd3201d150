"""Browses the entities of a workspace's graph, and sets aliases under the workspace's write lease."""

from collections.abc import Sequence

from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.domain.ingestion.leases import WorkspaceLeases
from app.domain.ingestion.repository import bump
from app.domain.workspaces.opening import WorkspaceOpener
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.retrieval.contract import EngineOff, EngineWorkspace
from app.retrieval.entity_contract import Entities, EntityAlias, EntityDetail, EntitySummary

# A change takes a moment where an insert may take minutes: better to say "busy" than to keep the caller hanging.
LEASE_WAIT_SECONDS = 10


class EntityService:
    def __init__(
        self, database: Database, workspaces: WorkspaceOpener, entities: Entities, leases: WorkspaceLeases
    ) -> None:
        self._database = database
        self._workspaces = workspaces
        self._entities = entities
        self._leases = leases

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

    async def add_alias(self, tenant_id: TenantId, workspace_id: WorkspaceId, alias: str, target: str) -> EntityAlias:
        """Raises InvalidAlias or AliasTaken with nothing changed, and WorkspaceBusy."""
        workspace = await self.open(tenant_id, workspace_id)
        async with self._leases.hold(workspace.ref, wait_seconds=LEASE_WAIT_SECONDS) as lease:
            return await self._entities.add_alias(workspace, alias, target, lease, companions=[bump(workspace.ref)])

    async def remove_alias(self, tenant_id: TenantId, workspace_id: WorkspaceId, alias: str) -> None:
        """Raises AliasNotFound and WorkspaceBusy."""
        workspace = await self.open(tenant_id, workspace_id)
        async with self._leases.hold(workspace.ref, wait_seconds=LEASE_WAIT_SECONDS) as lease:
            await self._entities.remove_alias(workspace, alias, lease, companions=[bump(workspace.ref)])

    async def open(self, tenant_id: TenantId, workspace_id: WorkspaceId) -> EngineWorkspace:
        """Raises WorkspaceNotFound, WorkspaceDeleting or EngineOff."""
        async with self._database.tenant(tenant_id) as session:
            record = await WorkspaceRepository(session).get(workspace_id)
        refuse_deleting(record.row)
        if "graph" not in record.row.engines:
            raise EngineOff("Entities belong to the graph, which this workspace does not have.", engine="graph")
        return await self._workspaces.engine_workspace(record)
