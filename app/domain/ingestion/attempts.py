"""One attempt at one index: claimed, kept alive, metered, and concluded into a state whatever happens to it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from uuid import UUID, uuid4

import structlog
from sqlalchemy import event

from app import tracing
from app.db.session import CONNECTION_ERRORS, TenantSession, is_unavailable
from app.domain.ingestion.booking_repository import booking
from app.domain.ingestion.keepalive import kept_alive
from app.domain.ingestion.ports import Ports
from app.domain.ingestion.records import VersionFacts
from app.domain.ingestion.repository import IngestionRepository
from app.domain.ingestion.states import Claim, ClaimLost, Ended, IndexStates
from app.domain.usage.booking import note_not_recorded
from app.domain.workspaces.repository import WorkspaceRecord, WorkspaceRepository
from app.errors import AppError, Unavailable
from app.jobs import IndexGraph, ProcessVersion, PurgeGraphVersion, enqueue
from app.metrics import ATTEMPTS_FAILED, STAGE_SECONDS
from app.providers.usage import UsageMeter, meter_usage
from app.retrieval.contract import Engine

logger = structlog.stdlib.get_logger(__name__)

IndexJob = ProcessVersion | IndexGraph
FIRST_BACKOFF_SECONDS = 3.0
LONGEST_BACKOFF_SECONDS = 60.0


class StageTimer:
    """Milliseconds by stage of one attempt, on top of what is given from earlier ones."""

    def __init__(self, **before: float) -> None:
        self.stage_ms: dict[str, float] = before

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        started = perf_counter()
        try:
            with tracing.span(stage):
                yield
        finally:
            seconds = perf_counter() - started
            self.stage_ms[stage] = self.stage_ms.get(stage, 0.0) + seconds * 1000
            STAGE_SECONDS.labels(stage).observe(seconds)


def engine_of(job: IndexJob) -> Engine:
    return "lazy" if isinstance(job, ProcessVersion) else "graph"


@dataclass
class Begun:
    """What an attempt works on, as it was when it was claimed, and the model calls that are not in the ledger yet."""

    claim: Claim
    facts: VersionFacts
    workspace: WorkspaceRecord
    meter: UsageMeter = field(default_factory=UsageMeter)
    # Parts of it that were sent there, by the ids of their bookings, until the answer says that they are in.
    unconfirmed: dict[UUID, UsageMeter] = field(default_factory=dict)

    def to_be_booked(self) -> tuple[tuple[UUID, UsageMeter], ...]:
        """All that is not known to be in the ledger."""
        if self.meter.totals:
            self.unconfirmed[uuid4()] = self.meter.take()
        return tuple(self.unconfirmed.items())

    def confirm(self, booked: Iterable[UUID]) -> None:
        """These bookings are in the ledger."""
        for booking_id in booked:
            self.unconfirmed.pop(booking_id, None)


# What the attempt reads first, in the transaction that claims the index.
Opening = Callable[[TenantSession, Begun], Awaitable[None]]


class Attempts:
    """Begins attempts and turns how they ended into a transition."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._bounded: dict[UUID, bool] = {}

    def may_be_bounded(self, tenant_id: UUID) -> bool:
        """Whether the tenant's plan may bound what is ingested at once, as the last attempt of this process saw it."""
        return self._bounded.get(tenant_id, True)

    @asynccontextmanager
    async def begin(
        self, job: IndexJob, owner: str, *, stage: str, opening: Opening | None = None
    ) -> AsyncIterator[Begun | None]:
        """Claim the job's index for the block, which starts with `stage`; None if there is nothing to do, or not for us.

        While the block runs the claim is kept alive: `ClaimLost` ends the block when it was cancelled, deleted or taken
        over. Model calls of the block are written to the ledger however it ends.
        """
        settings = self._ports.settings
        async with self._ports.database.tenant(job.tenant_id) as session:
            claim = await IndexStates(session).claim(
                job.version_id,
                engine_of(job),
                owner,
                lease_seconds=settings.lease_seconds,
                max_attempts=settings.max_attempts,
                stage=stage,
            )
            if isinstance(claim, Ended):
                await self._settle_failure(
                    session, job, claim, "too_many_attempts", "every attempt ended without a result"
                )
            begun = None
            facts = await IngestionRepository(session).find_version(job.version_id)
            if isinstance(claim, Claim) and facts is not None:
                record = await WorkspaceRepository(session).get(facts.ref.workspace_id)
                begun = Begun(claim, facts, record)
                self._bounded[job.tenant_id] = facts.is_bounded
                if opening is not None:
                    await opening(session, begun)
        if begun is None:
            yield None
            return
        # A job's context is its own, and ends with it.
        structlog.contextvars.bind_contextvars(document_id=str(begun.facts.document_id))
        with meter_usage(begun.meter):
            try:
                beats = self._ports.leases.heartbeats
                async with kept_alive(lambda: beats.claim(begun.claim), settings.lease_seconds, _lost):
                    yield begun
            finally:
                await self._book_rest(begun)

    async def conclude(self, job: IndexJob, owner: str, error: Exception) -> float | None:
        """Record how a failed attempt ended; the seconds after which to try again, or None if that was the last."""
        async with self._ports.database.tenant(job.tenant_id) as session:
            claim = await IngestionRepository(session).find_claim(job.version_id, engine_of(job), owner)
            if claim is None:
                logger.info("attempt_superseded", version_id=str(job.version_id), engine=engine_of(job))
                return None
            code, detail = reason_of(error)
            logger.warning("attempt_failed", engine=claim.engine, attempt=claim.attempt, code=code)
            ATTEMPTS_FAILED.labels(claim.engine, code).inc()
            # A claim that was lost and is still ours could not be kept alive: the database was away.
            may_repeat = isinstance(error, Unavailable | ClaimLost) or not isinstance(error, AppError)
            if may_repeat and claim.attempt < self._ports.settings.max_attempts:
                await IndexStates(session).put_back(claim, error=(code, detail))
                return backoff_seconds(claim.attempt)
            ended = await IndexStates(session).fail(claim, code, detail)
            await self._settle_failure(session, job, ended, code, detail)
        return None

    async def hand_back(self, job: IndexJob, owner: str) -> None:
        """Give up an attempt that this process has no time for, so that another worker takes it at once."""
        async with self._ports.database.tenant(job.tenant_id) as session:
            claim = await IngestionRepository(session).find_claim(job.version_id, engine_of(job), owner)
            if claim is not None:
                await IndexStates(session).hand_back(claim)
                enqueue(session, job)

    async def _settle_failure(
        self, session: TenantSession, job: IndexJob, ended: Ended, code: str, detail: str
    ) -> None:
        """What follows from a final failure: no graph without a text, and nothing half-written stays in the engine."""
        logger.warning("index_failed", version_id=str(job.version_id), engine=engine_of(job), code=code)
        if engine_of(job) == "lazy":
            await IndexStates(session).fail_dependent_graph(job.version_id, code, detail)
        await clean_up(session, job.workspace_id, job.version_id, ended)

    async def _book_rest(self, begun: Begun) -> None:
        if not begun.to_be_booked():
            return
        try:
            async with self._ports.database.tenant(begun.claim.tenant_id) as session:
                await book_usage(session, begun)
        except CONNECTION_ERRORS as error:
            note_not_recorded("ingestion", error, version_id=begun.claim.version_id)


async def book_usage(session: TenantSession, begun: Begun) -> None:
    """Write the calls that are not known to be in the ledger with this transaction."""
    bookings = begun.to_be_booked()
    if bookings:
        booked = [booking_id for booking_id, _ in bookings]
        event.listen(session.sync_session, "after_commit", lambda _: begun.confirm(booked), once=True)
        await session.execute(booking(begun.claim, begun.facts.document_id, bookings))


async def clean_up(session: TenantSession, workspace_id: UUID, version_id: UUID, ended: Ended) -> None:
    """Where the graph engine may hold something of a version that is not trusted: no answers from it, and a purge."""
    if ended.is_purging:
        repository = IngestionRepository(session)
        await repository.drop_live(version_id, "graph")
        enqueue(session, PurgeGraphVersion(session.tenant_id, workspace_id, version_id))
        await repository.bump_corpus(workspace_id)


def reason_of(error: Exception) -> tuple[str, str]:
    """Code and sentence for an error. An unexpected one may quote the document, so its own words are not kept."""
    if isinstance(error, AppError):
        return error.reason, error.detail
    if is_unavailable(error):
        return "database_unavailable", "the database was not reachable while the document was worked on"
    return "internal_error", f"an unexpected error ended the work ({type(error).__name__}); the log has the place"


def backoff_seconds(attempt: int) -> float:
    """Seconds before the attempt after this one: 3, 6, 12 … up to a minute."""
    return float(min(FIRST_BACKOFF_SECONDS * 2 ** (attempt - 1), LONGEST_BACKOFF_SECONDS))


def _lost() -> Exception:
    return ClaimLost("another worker has this version, or it was cancelled or deleted")
