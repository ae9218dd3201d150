"""Sends again what the broker lost and what a dead worker left: the rows are the truth, messages are hints.

Any number of sweepers may run: a job sent twice is claimed once.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from uuid import UUID

import structlog

from app.db.session import Database
from app.domain.ingestion.purge_repository import StaleWork
from app.domain.ingestion.states import IndexStates
from app.domain.tenants.deletion_repository import StaleDeletions
from app.jobs import (
    IndexGraph,
    Job,
    ProcessVersion,
    PurgeDocument,
    PurgeGraphVersion,
    PurgeTenant,
    PurgeWorkspace,
    enqueue,
)
from app.settings import Settings

logger = structlog.stdlib.get_logger(__name__)

# Messages waiting in a queue say that workers are behind, not that anything was lost: more of them would not help.
MAX_WAITING = 500
MAX_ROWS = 500  # of each kind

JOBS: dict[str, type[ProcessVersion] | type[IndexGraph] | type[PurgeDocument] | type[PurgeGraphVersion]] = {
    "lazy": ProcessVersion,
    "graph": IndexGraph,
    "purge": PurgeGraphVersion,
    "document": PurgeDocument,
}


class Sweeper:
    """`waiting` counts the messages in a queue of the broker."""

    def __init__(self, database: Database, settings: Settings, waiting: Callable[[str], Awaitable[int]]) -> None:
        self._database = database
        self._settings = settings
        self._waiting = waiting

    async def sweep(self) -> int:
        """Send again what stood still for too long; the number of jobs sent."""
        jobs = await self._stale_jobs()
        by_tenant: dict[UUID, list[Job]] = defaultdict(list)
        for queue in {job.queue for job in jobs}:
            room = max(0, MAX_WAITING - await self._waiting(queue))
            for job in [job for job in jobs if job.queue == queue][:room]:
                by_tenant[job.tenant_id].append(job)
        for tenant_id, owned in by_tenant.items():
            async with self._database.tenant(tenant_id) as session:
                await IndexStates(session).mark_sent(
                    [job.version_id for job in owned if isinstance(job, ProcessVersion | IndexGraph)]
                )
                for job in owned:
                    enqueue(session, job)
        sent = sum(len(owned) for owned in by_tenant.values())
        if sent:
            logger.info("jobs_sent_again", jobs=sent, stale=len(jobs))
        return sent

    async def _stale_jobs(self) -> Sequence[Job]:
        requeue_after = timedelta(seconds=self._settings.requeue_after_seconds)
        async with self._database.system() as session:
            rows = await StaleWork(session).list(requeue_after, MAX_ROWS)
        async with self._database.operator() as session:
            deletions = [PurgeTenant(tenant_id) for tenant_id in await StaleDeletions(session).list(requeue_after)]
        return deletions + [
            PurgeWorkspace(row.tenant_id, row.workspace_id)
            if row.kind == "workspace"
            else JOBS[row.kind](row.tenant_id, row.workspace_id, row.subject_id)
            for row in rows
        ]
