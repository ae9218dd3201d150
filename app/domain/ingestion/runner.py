"""Runs any ingestion job, and decides what becomes of one that failed or has to be given up. Workers call nothing else."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from app.db.session import CONNECTION_ERRORS
from app.domain.ingestion.attempts import Attempts, backoff_seconds, engine_of
from app.domain.ingestion.graph import GraphIndexer
from app.domain.ingestion.ports import Ports
from app.domain.ingestion.process import VersionProcessor
from app.domain.ingestion.purge import Purger
from app.domain.ingestion.purge_tenant import TenantPurger
from app.domain.limits.repository import FairQueue, LimitsRepository
from app.jobs import (
    ChangeEntities,
    IndexGraph,
    Job,
    MergeDuplicates,
    ProcessVersion,
    PurgeDocument,
    PurgeGraphVersion,
    PurgeTenant,
    PurgeUnownedVersion,
    PurgeWorkspace,
    RefreshThemes,
    enqueue,
)

logger = structlog.stdlib.get_logger(__name__)

PURGE_RUNS = 5


class JobRunner:
    """`owner` names one attempt: it must be new each time a job is run."""

    def __init__(
        self,
        ports: Ports,
        make_change: Callable[[ChangeEntities], Awaitable[None]],
        merge_duplicates: Callable[[MergeDuplicates], Awaitable[None]],
        refresh_themes: Callable[[RefreshThemes], Awaitable[None]],
    ) -> None:
        self._database = ports.database
        # Jobs that are not about a document's way into an index or out of it.
        self._others: Mapping[type[Job], Callable[[Any], Awaitable[None]]] = {
            ChangeEntities: make_change,
            MergeDuplicates: merge_duplicates,
            RefreshThemes: refresh_themes,
        }
        self._attempts = Attempts(ports)
        self._processor = VersionProcessor(ports, self._attempts)
        self._graph = GraphIndexer(ports, self._attempts)
        self._purger = Purger(ports)
        self._tenants = TenantPurger(ports, self._purger)

    async def choose(self, job: Job) -> Job | None:
        """What to do for a message: of indexing, whoever's turn it is, for a queue is first in, first out over all tenants.

        Each message stands for one queued version, so what it named is done for another one's. None if nobody may go on.
        """
        if not isinstance(job, ProcessVersion | IndexGraph):
            return job
        try:
            async with self._database.statement() as session:
                found = await FairQueue(session).next(engine_of(job), job.tenant_id, job.version_id)
        except CONNECTION_ERRORS as error:
            logger.warning("turn_not_chosen", error_type=type(error).__name__)
            return job  # its claim will meet the same database, and be concluded
        return type(job)(*found) if found is not None else None

    async def follow_up(self, job: Job) -> None:
        """Call what waited behind the limit of its tenant for this one to end: its own message is used up.

        Behind a limit that was set meanwhile the sweeper finds it.
        """
        if isinstance(job, ProcessVersion | IndexGraph) and self._attempts.may_be_bounded(job.tenant_id):
            async with self._database.tenant(job.tenant_id) as session:
                for engine in await LimitsRepository(session).engines_behind_limit():
                    called = ProcessVersion if engine == "lazy" else IndexGraph
                    enqueue(session, called(job.tenant_id, job.workspace_id, job.version_id))

    async def run(self, job: Job, owner: str) -> None:
        """Do the job; a repetition of one that is done, or that another worker is at, does nothing. Raises what stops it."""
        match job:
            case ProcessVersion():
                await self._processor.run(job, owner)
            case IndexGraph():
                await self._graph.run(job, owner)
            case PurgeDocument():
                await self._purger.document(job)
            case PurgeGraphVersion():
                await self._purger.graph_version(job)
            case PurgeUnownedVersion():
                await self._purger.unowned_version(job)
            case PurgeWorkspace():
                await self._purger.workspace(job)
            case PurgeTenant():
                await self._tenants.run(job)
            case _ if type(job) in self._others:
                await self._others[type(job)](job)
            case _:
                raise ValueError(f"no handler for {job.name}")

    async def conclude(self, job: Job, owner: str, error: Exception, *, runs: int) -> float | None:
        """Record a failure; the seconds after which to run the job again, or None. `runs` counts those so far.

        Purges and changes of entities are repeated here a few times, then by the sweeper: purges, which have no state to fail
        into, without end, and changes until `EntityChanges.run` gives them up. That holds for a busy workspace too: messages
        that came back until it is free would add up with those of the sweeper.
        """
        if isinstance(job, ProcessVersion | IndexGraph):
            return await self._attempts.conclude(job, owner, error)
        if isinstance(job, RefreshThemes):
            logger.warning("themes_not_built", error_type=type(error).__name__)
        else:
            logger.warning("purge_interrupted", job=job.name, error_type=type(error).__name__)
        return backoff_seconds(runs) if runs < PURGE_RUNS else None

    async def hand_back(self, job: Job, owner: str) -> bool:
        """Give an unfinished job up for another worker. True if the caller must send it again itself."""
        if isinstance(job, ProcessVersion | IndexGraph):
            await self._attempts.hand_back(job, owner)
            return False
        return True
