"""The one transaction of a unit: fenced by the lease's epoch, shielded from cancellation, its outcome never guessed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID, uuid4

import asyncpg
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from app.retrieval.contract import GraphWriteFailed, Lease, LeaseLost, Statement, WorkspaceRef
from app.retrieval.lightrag.storage.context import OutcomeUnknown, UnitConflict
from app.retrieval.lightrag.storage.weight import UnitLimits

# The first statement: it locks the workspace's row, refuses a holder that slept while others wrote, and leaves the
# unit's id behind, by which a lost answer to COMMIT is settled.
FENCE = """UPDATE workspace_leases SET epoch = epoch + 1, unit_id = $1
 WHERE tenant_id = $2 AND workspace_id = $3 AND epoch = $4"""

READ_LEASE = "SELECT epoch, owner FROM workspace_leases WHERE tenant_id = $1 AND workspace_id = $2"

# Waits for a commit that the server is still busy with, because that holds the row's lock.
SETTLE = "SELECT unit_id FROM workspace_leases WHERE tenant_id = $1 AND workspace_id = $2 FOR UPDATE"

CONNECTION_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
# The server rolled back, and the same statements may go in the next time.
_TRANSIENT = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)

SETTLE_ATTEMPTS = 5
SETTLE_WAIT_SECONDS = 0.2
COMMIT_ATTEMPTS = 3


class UnitDatabase(Protocol):
    """Statements and transactions inside the fence of the running workspace and its tenant."""

    async def fetch(self, statement: str, *arguments: Any) -> Sequence[Any]: ...

    def transaction(self, tenant_id: UUID) -> AbstractAsyncContextManager["asyncpg.Connection"]: ...


@dataclass(frozen=True)
class Commit:
    """What goes in at once."""

    unit_id: UUID
    ref: WorkspaceRef
    epoch: int
    statements: Sequence[Statement]
    timeout_seconds: float


async def read_epoch(database: UnitDatabase, lease: Lease) -> int:
    """The workspace's epoch. Raises `LeaseLost` unless the lease is still its owner's."""
    rows = await database.fetch(READ_LEASE, lease.ref.tenant_id, lease.ref.workspace_id)
    if not rows or rows[0]["owner"] != lease.owner or rows[0]["epoch"] < lease.epoch:
        raise LeaseLost("the workspace's lease has passed to somebody else")
    return int(rows[0]["epoch"])


async def run_shielded(call: Callable[[], Awaitable[Any]]) -> None:
    """Run to the end whatever happens to the caller. A cancellation that came meanwhile is swallowed if it succeeded.

    It would otherwise report a document as timed out that is in.
    """
    task = asyncio.ensure_future(call())
    cancellations = 0
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancellations += 1
    try:
        task.result()
    except BaseException:
        if cancellations:
            raise asyncio.CancelledError from task.exception()
        raise
    current = asyncio.current_task()
    for _ in range(cancellations if current is not None else 0):
        current.uncancel()  # type: ignore[union-attr]


async def commit(database: UnitDatabase, what: Commit) -> None:
    """Write it all or nothing.

    Raises `UnitConflict` if the epoch has moved, `OutcomeUnknown` if nobody can tell whether it went in, and
    `GraphWriteFailed` if the server was lost or too slow and nothing went in.
    """
    for attempt in range(1, COMMIT_ATTEMPTS + 1):
        try:
            async with asyncio.timeout(what.timeout_seconds):
                await _transact(database, what)
        except CONNECTION_ERRORS as error:
            if not await _went_in(database, what):
                raise GraphWriteFailed("the connection to the database was lost; nothing was written") from error
        except asyncpg.QueryCanceledError as error:
            raise GraphWriteFailed("the database took too long; nothing was written") from error
        except _TRANSIENT:
            if attempt == COMMIT_ATTEMPTS:
                raise
            continue
        return


async def write_fenced(database: UnitDatabase, lease: Lease, statements: Sequence[Statement]) -> None:
    """Run statements that need no unit in a transaction fenced like one. Raises what `read_epoch` and `commit` raise."""
    epoch = await read_epoch(database, lease)
    what = Commit(uuid4(), lease.ref, epoch, statements, UnitLimits().commit_timeout_seconds)
    await run_shielded(lambda: commit(database, what))


async def _transact(database: UnitDatabase, what: Commit) -> None:
    moved = UnitConflict("the workspace has been written by somebody else since this unit began")
    fence = Statement(FENCE, (what.unit_id, what.ref.tenant_id, what.ref.workspace_id, what.epoch), otherwise=moved)
    async with database.transaction(what.ref.tenant_id) as connection:
        for statement in (fence, *what.statements):
            await execute(connection, statement)


async def execute(connection: "asyncpg.Connection", statement: Statement) -> None:
    """One statement of a transaction. Raises its `otherwise` if it touches no row."""
    status = await connection.execute(statement.sql, *statement.values)
    # The last word of the status is the number of rows.
    if statement.otherwise is not None and status.split()[-1] == "0":
        raise statement.otherwise


async def _went_in(database: UnitDatabase, what: Commit) -> bool:
    """Whether the transaction, whose connection is lost, was committed."""
    try:
        async for attempt in AsyncRetrying(
            stop=stop_after_attempt(SETTLE_ATTEMPTS),
            wait=wait_exponential(SETTLE_WAIT_SECONDS),
            retry=retry_if_exception_type(CONNECTION_ERRORS),
            reraise=True,
        ):
            with attempt:
                async with database.transaction(what.ref.tenant_id) as connection:
                    found = await connection.fetchval(SETTLE, what.ref.tenant_id, what.ref.workspace_id)
                    return bool(found == what.unit_id)
    except CONNECTION_ERRORS as error:
        raise OutcomeUnknown("the connection was lost at the commit", unit_id=str(what.unit_id)) from error
    return False
