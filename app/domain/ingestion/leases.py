"""The exclusive right to write a workspace's graph: a row with an owner, an expiry and an epoch that only grows.

LightRAG allows one writing process per workspace and enforces nothing (facts F1, F2), so inserts, removals and merges
of entities all happen inside `WorkspaceLeases.hold`. Engines read the epoch from the `Lease` they are given.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

import structlog

from app.db.session import CONNECTION_ERRORS, Database, TenantSession, is_lock_timeout
from app.domain.ingestion.heartbeats import Heartbeats
from app.domain.ingestion.keepalive import kept_alive
from app.domain.ingestion.lease_repository import AWAIT_RELEASE, CONFIRM, RELEASE, TAKE
from app.domain.ingestion.repository import IngestionRepository
from app.domain.ingestion.states import IndexStates
from app.jobs import IndexGraph, enqueue
from app.retrieval.contract import Lease, LeaseLost, WorkspaceBusy, WorkspaceRef

logger = structlog.stdlib.get_logger(__name__)

# Between two questions whether the lease is free, longer each time: another process writes for a moment, or for long.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 0.4
LOCK_WAIT_MS = 1000

# What the holder does in the transaction that takes the lease.
Step = Callable[[TenantSession], Awaitable[None]]


class _Line:
    """Those of one process who want the same workspace's lease, in order: only the first of them asks the database."""

    def __init__(self) -> None:
        self.waiting = 0
        self._first = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, wait_seconds: float) -> AsyncIterator[float]:
        """Be the first for the block; gives the seconds that are left of `wait_seconds`. Raises WorkspaceBusy."""
        deadline = asyncio.get_running_loop().time() + wait_seconds
        self.waiting += 1
        try:
            async with asyncio.timeout_at(deadline):
                await self._first.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self.waiting -= 1
        try:
            yield deadline - asyncio.get_running_loop().time()
        finally:
            self._first.release()


class WorkspaceLeases:
    """Takes, keeps and releases the write leases of workspaces, each step in a transaction of its own."""

    def __init__(self, database: Database, lease_seconds: float) -> None:
        self.heartbeats = Heartbeats(database, lease_seconds)
        self._database = database
        self._lease_seconds = lease_seconds
        self._lines: WeakValueDictionary[UUID, _Line] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(
        self,
        ref: WorkspaceRef,
        *,
        wait_seconds: float,
        longest_line: int | None = None,
        opening: Step | None = None,
    ) -> AsyncIterator[Lease]:
        """Hold the lease for the block. Raises LeaseLost if it is lost inside.

        Raises WorkspaceBusy if it is not free in time, or at once where `longest_line` others of this process wait.
        `opening` runs in the transaction that takes the lease; what it raises leaves the lease free.
        """
        line = self._lines.setdefault(ref.workspace_id, _Line())
        if longest_line is not None and line.waiting >= longest_line:
            raise _busy()
        is_taken = False
        try:
            async with line.turn(wait_seconds) as left:
                lease = await self._wait(ref, left, opening)
                is_taken = True
                try:
                    async with kept_alive(lambda: self.heartbeats.lease(lease), self._lease_seconds, _lost):
                        yield lease
                finally:
                    # Also when the block was cancelled: the next writer should not have to wait for the expiry.
                    await asyncio.shield(asyncio.ensure_future(self._release(lease, line)))
        finally:
            if not is_taken:
                # Whoever released the lease meanwhile left the waking to us.
                await asyncio.shield(asyncio.ensure_future(self._try_to_wake_next(ref)))

    async def wake_next(self, ref: WorkspaceRef) -> None:
        """Send the job of the version that waits longest for this workspace, if the lease is free."""
        try:
            async with self._database.tenant(ref.tenant_id, lock_wait_ms=LOCK_WAIT_MS) as session:
                # A release that is under way may have looked before what waits here was committed: its outcome is waited for.
                await session.execute(AWAIT_RELEASE, {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id})
                await _wake_next(session, ref)
        except CONNECTION_ERRORS as error:
            # A holder that writes for so long has not released it yet, and will look.
            if not is_lock_timeout(error):
                raise

    async def take(self, ref: WorkspaceRef, opening: Step | None = None) -> Lease | None:
        """The lease, if it is free or has expired; whoever held it before is fenced by the epoch from now on."""
        owner = uuid4().hex
        values = {
            "tenant_id": ref.tenant_id,
            "workspace_id": ref.workspace_id,
            "owner": owner,
            "lease_seconds": self._lease_seconds,
        }
        try:
            async with self._database.tenant(ref.tenant_id, lock_wait_ms=LOCK_WAIT_MS) as session:
                epoch = await session.scalar(TAKE, values)
                if epoch is not None and opening is not None:
                    await opening(session)
        except CONNECTION_ERRORS as error:
            # The row is locked by the last transaction of a holder: the workspace is busy, expired or not.
            if not is_lock_timeout(error):
                raise
            return None
        return None if epoch is None else Lease(ref, owner, epoch)

    async def _wait(self, ref: WorkspaceRef, wait_seconds: float, opening: Step | None) -> Lease:
        deadline = asyncio.get_running_loop().time() + wait_seconds
        pause = FIRST_PAUSE_SECONDS
        while (lease := await self.take(ref, opening)) is None:
            if asyncio.get_running_loop().time() >= deadline:
                raise _busy()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        return lease

    async def _release(self, lease: Lease, line: _Line) -> None:
        try:
            async with self._database.tenant(lease.ref.tenant_id) as session:
                await session.execute(RELEASE, _named(lease))
                # One who waits in this process takes the lease now, and wakes when it is done.
                if not line.waiting:
                    await _wake_next(session, lease.ref)
        except CONNECTION_ERRORS as error:
            # The work inside is done or has failed for its own reasons; the lease runs out by itself.
            logger.warning("lease_not_released", error_type=type(error).__name__)

    async def _try_to_wake_next(self, ref: WorkspaceRef) -> None:
        try:
            await self.wake_next(ref)
        except CONNECTION_ERRORS as error:
            # The sweeper sends the job again.
            logger.warning("lease_not_released", error_type=type(error).__name__)


async def _wake_next(session: TenantSession, ref: WorkspaceRef) -> None:
    version_id = await IngestionRepository(session).find_waiting(ref.workspace_id)
    # Marked, so that the next release wakes another one; the sweeper sends it again should the message be lost.
    if version_id is not None and await IndexStates(session).wake(version_id):
        enqueue(session, IndexGraph(ref.tenant_id, ref.workspace_id, version_id))


async def confirm(session: TenantSession, lease: Lease) -> None:
    """Fence this transaction: nobody can take the lease before it ends. Raises LeaseLost if somebody has."""
    if await session.scalar(CONFIRM, _named(lease)) is None:
        raise LeaseLost("another writer has taken over this workspace")


def _named(lease: Lease) -> dict[str, object]:
    return {"tenant_id": lease.ref.tenant_id, "workspace_id": lease.ref.workspace_id, "owner": lease.owner}


def _busy() -> WorkspaceBusy:
    return WorkspaceBusy("another write of this workspace is under way", retry_after_seconds=5)


def _lost() -> Exception:
    return LeaseLost("this workspace's lease ran out before the work was done")
