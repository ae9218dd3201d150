"""Browses the entities of a workspace's graph; merges them and sets aliases under the workspace's write lease."""

from collections.abc import Sequence

from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.db.statements import as_text
from app.domain.ingestion.leases import WorkspaceLeases
from app.domain.ingestion.repository import bumping_corpus
from app.domain.usage.repository import UsageLedger
from app.domain.workspaces.opening import WorkspaceOpener
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.providers.usage import meter_usage
from app.retrieval.contract import EngineOff, EngineWorkspace, Statement
from app.retrieval.entity_contract import Entities, EntityAlias, EntityDetail, EntitySummary, MergeRequest

# A merge takes seconds where an insert may take minutes: better to say "busy" than to keep the caller hanging.
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
        workspace = await self._open(tenant_id, workspace_id)
        return await self._entities.list(workspace, prefix=prefix, after=after, limit=limit)

    async def get(self, tenant_id: TenantId, workspace_id: WorkspaceId, name: str) -> EntityDetail:
        """Raises WorkspaceNotFound, EngineOff or EntityNotFound."""
        return await self._entities.get(await self._open(tenant_id, workspace_id), name)

    async def merge(self, tenant_id: TenantId, workspace_id: WorkspaceId, request: MergeRequest) -> EntityDetail:
        """All or nothing of it. Raises EntityNotFound or InvalidMerge with nothing changed, and WorkspaceBusy."""
        workspace = await self._open(tenant_id, workspace_id)
        bump = _bump(workspace)
        with meter_usage() as meter:
            async with self._leases.hold(workspace.ref, wait_seconds=LEASE_WAIT_SECONDS) as lease:
                merged = await self._entities.merge(workspace, request, lease, companions=[bump])
        async with self._database.tenant(tenant_id) as session:
            await UsageLedger(session).add(meter, workspace_id)
        return merged

    async def aliases(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, *, after: str | None, limit: int
    ) -> Sequence[EntityAlias]:
        """By alias, from the first after `after`. Raises WorkspaceNotFound or EngineOff."""
        workspace = await self._open(tenant_id, workspace_id)
        return await self._entities.aliases(workspace, after=after, limit=limit)

    async def add_alias(self, tenant_id: TenantId, workspace_id: WorkspaceId, alias: str, target: str) -> EntityAlias:
        """Raises InvalidAlias or AliasTaken with nothing changed, and WorkspaceBusy."""
        workspace = await self._open(tenant_id, workspace_id)
        async with self._leases.hold(workspace.ref, wait_seconds=LEASE_WAIT_SECONDS) as lease:
            return await self._entities.add_alias(workspace, alias, target, lease, companions=[_bump(workspace)])

    async def remove_alias(self, tenant_id: TenantId, workspace_id: WorkspaceId, alias: str) -> None:
        """Raises AliasNotFound and WorkspaceBusy."""
        workspace = await self._open(tenant_id, workspace_id)
        async with self._leases.hold(workspace.ref, wait_seconds=LEASE_WAIT_SECONDS) as lease:
            await self._entities.remove_alias(workspace, alias, lease, companions=[_bump(workspace)])

    async def _open(self, tenant_id: TenantId, workspace_id: WorkspaceId) -> EngineWorkspace:
        async with self._database.tenant(tenant_id) as session:
            record = await WorkspaceRepository(session).get(workspace_id)
        refuse_deleting(record.row)
        if "graph" not in record.row.engines:
            raise EngineOff("Entities belong to the graph, which this workspace does not have.", engine="graph")
        return await self._workspaces.engine_workspace(record)


def _bump(workspace: EngineWorkspace) -> Statement:
    """With the change itself: no answer from before it may be taken for one from after it."""
    return Statement(*as_text(bumping_corpus(workspace.ref.tenant_id, workspace.ref.workspace_id)))
