"""Calls off what is queued or under way for a version; whoever works on it finds its claim gone and stops."""

from uuid import UUID

from app.db.session import TenantSession
from app.domain.ingestion.purge import ENGINES
from app.domain.ingestion.purge_repository import PurgeRepository
from app.domain.ingestion.repository import IngestionRepository
from app.domain.ingestion.states import IndexStates
from app.jobs import PurgeGraphVersion, enqueue


async def cancel_version(session: TenantSession, workspace_id: UUID, version_id: UUID) -> bool:
    """False if nothing was queued or under way. Engines that are ready go on answering.

    What a merge that is cut off may leave in the graph is removed by a job.
    """
    states = IndexStates(session)
    cancelled = [engine for engine in ENGINES if await states.cancel(version_id, engine)]
    if cancelled and await PurgeRepository(session).is_purging(version_id):
        await IngestionRepository(session).drop_live(version_id, "graph")
        enqueue(session, PurgeGraphVersion(session.tenant_id, workspace_id, version_id))
    return bool(cancelled)
