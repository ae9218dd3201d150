"""Sends again what the broker lost and what a dead worker left: the rows are the truth, messages are hints.

Any number of sweepers may run: a job sent twice is claimed once.
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog

from app.db.session import Database
from app.domain.ingestion.purge_repository import PurgeRepository, StaleWork
from app.domain.ingestion.states import IndexStates
from app.domain.tenants.deletion_repository import StaleDeletions
from app.jobs import (
    ChangeEntities,
    IndexGraph,
    Job,
    MergeDuplicates,
    ProcessVersion,
    PurgeDocument,
    PurgeGraphVersion,
    PurgeTenant,
    PurgeWorkspace,
    RefreshThemes,
    enqueue,
)
from app.metrics import count_sweep
from app.settings import Settings

logger = structlog.stdlib.get_logger(__name__)

# Messages waiting in a queue say that workers are behind, not that anything was lost: more of them would not help.
MAX_WAITING = 500
MAX_ROWS = 500  # of each kind

# What stands still, by its kind in the schema's function, and the job that takes care of it.
JOBS: Mapping[str, Callable[[Any], Job]] = {
    "queued_lazy": lambda row: ProcessVersion(row.tenant_id, row.workspace_id, row.subject_id),
    "expired_lazy": lambda row: ProcessVersion(row.tenant_id, row.workspace_id, row.subject_id),
    "queued_graph": lambda row: IndexGraph(row.tenant_id, row.workspace_id, row.subject_id),
    "expired_graph": lambda row: IndexGraph(row.tenant_id, row.workspace_id, row.subject_id),
    "purging": lambda row: PurgeGraphVersion(row.tenant_id, row.workspace_id, row.subject_id),
    "superseded": lambda row: PurgeGraphVersion(row.tenant_id, row.workspace_id, row.subject_id),
    "document": lambda row: PurgeDocument(row.tenant_id, row.workspace_id, row.subject_id),
    "workspace": lambda row: PurgeWorkspace(row.tenant_id, row.workspace_id),
    "entity_change": lambda row: ChangeEntities(row.tenant_id, row.workspace_id, row.subject_id),
    "duplicates": lambda row: MergeDuplicates(row.tenant_id, row.workspace_id),
    "themes": lambda row: RefreshThemes(row.tenant_id, row.workspace_id),
}
# The place of a job's row in the order in which rows are locked: states of versions, documents, workspaces, changes, and
# last, as all transactions do, corpus versions.
LOCKED: Mapping[type[Job], int] = {
    ProcessVersion: 0, IndexGraph: 0, PurgeGraphVersion: 0, PurgeDocument: 1, PurgeWorkspace: 2, PurgeTenant: 2,
    ChangeEntities: 3, MergeDuplicates: 4, RefreshThemes: 4,
}  # fmt: skip
TENANT = "tenant"
# Themes are only ever looked at because a sweep says so: no sign that anything was lost.
EXPECTED = frozenset({"themes"})


@dataclass(frozen=True)
class SweepReport:
    """What was found, and how much of it was taken care of, by kind; every kind is there, with 0 for none."""

    found: Mapping[str, int]
    handled: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.handled.values())


class Sweeper:
    """`waiting` counts the messages in a queue of the broker."""

    def __init__(self, database: Database, settings: Settings, waiting: Callable[[str], Awaitable[int]]) -> None:
        self._database = database
        self._settings = settings
        self._waiting = waiting

    async def sweep(self, *, is_dry_run: bool = False) -> SweepReport:
        """Send again what stood still for too long, or only count it."""
        stale = await self._stale_jobs()
        sent = [] if is_dry_run else await self._with_room(stale)
        by_tenant: dict[UUID, list[Job]] = defaultdict(list)
        for _, job in sent:
            by_tenant[job.tenant_id].append(job)
        for tenant_id, jobs in by_tenant.items():
            await self._send(tenant_id, jobs)
        report = SweepReport(_by_kind(stale), _by_kind(sent))
        if not is_dry_run:
            count_sweep(report.found, report.handled)
        if any(kind not in EXPECTED for kind, _ in sent):
            kinds = {kind: count for kind, count in report.handled.items() if count}
            logger.info("jobs_sent_again", jobs=report.total, stale=len(stale), **kinds)
        return report

    async def _stale_jobs(self) -> list[tuple[str, Job]]:
        requeue_after = timedelta(seconds=self._settings.requeue_after_seconds)
        async with self._database.system() as session:
            rows = await StaleWork(session).list(requeue_after, MAX_ROWS)
        async with self._database.operator() as session:
            deletions = await StaleDeletions(session).list(requeue_after)
        return [
            *((TENANT, PurgeTenant(tenant_id)) for tenant_id in deletions),
            *((row.kind, JOBS[row.kind](row)) for row in rows),
        ]

    async def _with_room(self, stale: Sequence[tuple[str, Job]]) -> list[tuple[str, Job]]:
        room = {queue: max(0, MAX_WAITING - await self._waiting(queue)) for queue in {job.queue for _, job in stale}}
        taken: list[tuple[str, Job]] = []
        for kind, job in in_turns(stale):
            if room[job.queue] > 0:
                room[job.queue] -= 1
                taken.append((kind, job))
        return taken

    async def _send(self, tenant_id: UUID, jobs: Sequence[Job]) -> None:
        async with self._database.tenant(tenant_id) as session:
            await IndexStates(session).mark_sent(
                [job.version_id for job in jobs if isinstance(job, ProcessVersion | IndexGraph)]
            )
            await self._mark_others_sent(PurgeRepository(session), in_lock_order(jobs))
            for job in jobs:
                enqueue(session, job)

    async def _mark_others_sent(self, repository: PurgeRepository, jobs: Sequence[Job]) -> None:
        """Or the next sweep would add its messages to those that are still waiting."""
        for job in jobs:
            match job:
                case PurgeGraphVersion():
                    await repository.touch_version(job.version_id)
                case PurgeDocument():
                    await repository.touch_document(job.document_id)
                case PurgeWorkspace():
                    await repository.touch_workspace(job.workspace_id)
                case ChangeEntities():
                    await repository.touch_change(job.change_id)
                case MergeDuplicates():
                    await repository.touch_duplicates(job.workspace_id)
                case RefreshThemes():
                    await repository.touch_themes(job.workspace_id)


def in_lock_order(jobs: Sequence[Job]) -> list[Job]:
    """By table and then by id, so that of two sweepers that found the same rows, each in an order of its own, none holds
    what the other waits for."""
    return sorted(jobs, key=lambda job: (LOCKED[type(job)], astuple(job)))


def in_turns(stale: Sequence[tuple[str, Job]]) -> list[tuple[str, Job]]:
    """The first job of each tenant for each queue, then the second, and so on: a backlog must not use up a queue's room
    while another tenant's work is lost, of whatever kind it is."""
    seen: Counter[tuple[str, UUID]] = Counter()
    turns: list[int] = []
    for _, job in stale:
        turns.append(seen[job.queue, job.tenant_id])
        seen[job.queue, job.tenant_id] += 1
    return [stale[place] for place in sorted(range(len(stale)), key=turns.__getitem__)]


def _by_kind(jobs: Sequence[tuple[str, Job]]) -> Mapping[str, int]:
    counts = Counter(kind for kind, _ in jobs)
    return {kind: counts[kind] for kind in (*JOBS, TENANT)}
