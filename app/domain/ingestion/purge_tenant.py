"""Removes a tenant that is being deleted, workspace by workspace, and ends with the count that proves that nothing is left.

Every step may be repeated from the start, so a worker that dies on the way loses nothing.
"""

import structlog

from app.domain.ingestion.ports import Ports
from app.domain.ingestion.purge import Purger
from app.domain.tenants.deletion_repository import TenantDeletions
from app.domain.tenants.repository import TenantDirectory
from app.errors import Unavailable
from app.jobs import PurgeTenant, PurgeWorkspace

logger = structlog.stdlib.get_logger(__name__)

OBJECTS = "objects"


class TenantNotEmpty(Unavailable):
    """Something of the tenant is still there, for example because a worker was writing it; the removal is repeated."""

    code = "tenant_not_empty"
    title = "Something of the tenant is left"


class TenantPurger:
    """Does the `PurgeTenant` job."""

    def __init__(self, ports: Ports, purger: Purger) -> None:
        self._ports = ports
        self._purger = purger

    async def run(self, job: PurgeTenant) -> None:
        """Raises WorkspaceBusy while another write holds a workspace, and TenantNotEmpty if the count is not zero."""
        async with self._ports.database.operator(job.tenant_id) as session:
            tenant = await TenantDirectory(session).find(job.tenant_id)
            if tenant is None or tenant.status != "deleting":
                return
            workspaces = await TenantDeletions(session).mark_workspaces()
            await TenantDeletions(session).note_work()
        for workspace_id in workspaces:
            await self._purger.workspace(PurgeWorkspace(job.tenant_id, workspace_id))
            async with self._ports.database.operator(job.tenant_id) as session:
                await TenantDeletions(session).note_work()
        # Also objects that no row names: an upload whose answer was lost may have left one.
        prefix = f"{job.tenant_id}/"
        await self._ports.blobs.delete(await self._ports.blobs.list(prefix))
        objects = len(await self._ports.blobs.list(prefix))
        async with self._ports.database.operator(job.tenant_id) as session:
            deletions = TenantDeletions(session)
            await TenantDirectory(session).remove(job.tenant_id)
            proof = {**await deletions.residue(), OBJECTS: objects}
            if left := {name: count for name, count in proof.items() if count}:
                # Rolls the removal back: the tenant's row is what the next run is found by.
                raise TenantNotEmpty("something of the tenant is still there", left=left)
            await deletions.finish(proof)
        logger.info("tenant_deleted", tenant_id=str(job.tenant_id), counted=len(proof))
