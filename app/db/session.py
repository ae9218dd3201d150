"""The unit of work: the only place that commits, that sets the tenant of a transaction, and that empties the outbox.

A `TenantSession` sees one tenant's rows (row level security on `app.tenant_id`); a `SystemSession` has no tenant and,
for the runtime role, sees only what belongs to nobody and what the schema's SECURITY DEFINER functions hand out.
"""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from time import monotonic
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import ORMExecuteState, Session, SessionTransaction
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from app.db.acting import audit_setting
from app.db.counting import note_statement
from app.db.pools import AppPool
from app.db.traced import trace_engine
from app.tracing import is_tracing

PING_AFTER_SECONDS = 10.0


# Told what a committed transaction left in its outbox. Losing a message is not an error: the rows are the truth.
Publish = Callable[[Sequence[Any]], Awaitable[None]]

# What a unit of work raises when the database is away; connecting raises the driver's own errors, unwrapped, and so does a
# statement that comes between a server's farewell and the end of its stream (InternalClientError).
CONNECTION_ERRORS = (
    SQLAlchemyError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)

# What a server that is stopped, was killed, or is starting tells its clients, and one that ended an idle transaction.
FAREWELLS = ("57P01", "57P02", "57P03", "25P03")
# What one says that runs but cannot work: no room on its disk, no memory, too many clients (class 53), a disk that fails
# (58), and one that may only be read: a standby after a failover, or a managed one that has protected itself when it was full.
WANTS = ("53", "58")
READ_ONLY = "25006"


def is_unavailable(error: BaseException) -> bool:
    """Whether the database went away or can do nothing now, rather than refused what it was asked."""
    if isinstance(error, DBAPIError):
        state = getattr(error.orig, "sqlstate", None) or ""
        return (
            error.connection_invalidated
            or isinstance(error, InterfaceError | OperationalError)
            or state.startswith(WANTS)
            or state in (*FAREWELLS, READ_ONLY)
        )
    return isinstance(
        error,
        PoolTimeout
        | asyncpg.InternalClientError
        | asyncpg.PostgresConnectionError
        | asyncpg.OperatorInterventionError
        | asyncpg.InsufficientResourcesError
        | asyncpg.PostgresSystemError
        | asyncpg.ReadOnlySQLTransactionError
        | asyncpg.InterfaceError
        | ConnectionError
        | socket.gaierror,
    )


class StatementTimedOut(Exception):
    """A statement was ended by the limit of `TenantSession.limited`, or not begun for it was over."""


def is_lock_timeout(error: BaseException) -> bool:
    """Whether a statement gave up because another transaction held its row for longer than `lock_timeout`."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == "55P03"


class _PooledConnection(asyncpg.Connection):  # type: ignore[misc]
    """Says who a transaction acts for in the message that begins it: a round trip less for every unit of work."""

    entering = ""

    async def execute(self, query: str, *arguments: Any, **options: Any) -> Any:
        if self.entering and query.startswith("BEGIN"):
            query, self.entering = f"{query.rstrip(';')}; {self.entering}", ""
        return await super().execute(query, *arguments, **options)


def _borrowed(settings: Mapping[str, str]) -> type[_PooledConnection]:
    """For a pooler that lends sessions for one transaction: what a session would be set to is set in each transaction."""
    always = entering(settings)

    class BorrowedConnection(_PooledConnection):
        async def execute(self, query: str, *arguments: Any, **options: Any) -> Any:
            if query.startswith("BEGIN"):
                self.entering = f"{always}; {self.entering}" if self.entering else always
            return await super().execute(query, *arguments, **options)

    return BorrowedConnection


def _connect_arguments(settings: Mapping[str, str], *, is_borrowed: bool) -> dict[str, Any]:
    """What the driver is told; `settings` are those of every session."""
    named = {"application_name": "trellis"}
    if not is_borrowed:
        return {"connection_class": _PooledConnection, "timeout": 10, "server_settings": {**named, **settings}}
    return {
        "connection_class": _borrowed(settings),
        "timeout": 10,
        "server_settings": named,
        # A statement with a name would stay behind in somebody else's session. The one without a name is replaced by the
        # next, and lives as long as its transaction.
        "statement_cache_size": 0,
        "prepared_statement_cache_size": 0,
        "prepared_statement_name_func": str,
    }


def entering(settings: Mapping[str, str]) -> str:
    """The statement, without parameters, that makes settings for the transaction it is in; they end with it."""
    return "SELECT " + ", ".join(
        f"set_config({_literal(key)}, {_literal(value)}, true)" for key, value in settings.items()
    )


def _literal(value: str) -> str:
    # A message of several statements takes no parameters. Digits cannot end a string, whatever they stand for.
    return f"convert_from(decode('{value.encode().hex()}', 'hex'), 'UTF8')"


LIMIT = text("SELECT set_config('statement_timeout', :limit, true)")
QUERY_CANCELED = "57014"
SHARE = text("SELECT pg_export_snapshot()")


class _TenantSyncSession(Session):
    """Sets who its transactions act for, at the start of each."""


@event.listens_for(_TenantSyncSession, "after_begin")
def _set_tenant(session: Session, transaction: SessionTransaction, connection: Connection) -> None:
    if transaction.nested:  # a savepoint: it is set already, and no snapshot can be shared from inside one
        return
    settings = {
        "app.tenant_id": session.info["tenant"],
        "app.operator": session.info.get("operator", ""),
        "app.audit": audit_setting(),
        **session.info.get("settings", {}),
    }
    pooled: Any = connection.connection.driver_connection
    pooled.entering = entering(settings)
    if session.info.get("shares"):
        session.info["snapshot"] = connection.execute(SHARE).scalar_one()


@event.listens_for(_TenantSyncSession, "do_orm_execute")
def _refuse_late(state: ORMExecuteState) -> None:
    if state.session.info.get("ends_at", inf) <= monotonic():
        raise StatementTimedOut


def _check_at_checkout(engine: AsyncEngine) -> None:
    """Replace connections that are gone when they are taken from the pool.

    A server that ends closes its sockets, which the driver notices without asking; only what was idle for long, and may
    have been dropped on the way, is asked. Asking each time would be three round trips for every unit of work.
    """

    @event.listens_for(engine.sync_engine, "checkin")
    def note_time(_connection: Any, record: ConnectionPoolEntry) -> None:
        record.info["idle_since"] = monotonic()

    @event.listens_for(engine.sync_engine, "checkout")
    def check(connection: Any, record: ConnectionPoolEntry, _proxy: PoolProxiedConnection) -> None:
        # Of a unit of work that ended before its first statement.
        connection.driver_connection.entering = ""
        if connection.driver_connection.is_closed():
            raise DisconnectionError("the server has closed the connection")
        if monotonic() - record.info.get("idle_since", monotonic()) < PING_AFTER_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise DisconnectionError("the connection does not answer") from error


def _count(*_: Any) -> None:
    note_statement()


class SystemSession(AsyncSession):
    """A session without a tenant."""

    @property
    def outbox(self) -> list[Any]:
        """Messages to publish once this unit of work has committed; dropped if it does not."""
        outbox: list[Any] = self.info.setdefault("outbox", [])
        return outbox


class TenantSession(SystemSession):
    """A session that sees and writes the rows of one tenant only."""

    sync_session_class = _TenantSyncSession

    @property
    def tenant_id(self) -> UUID:
        return UUID(self.info["tenant"])

    @property
    def snapshot(self) -> str:
        """The name by which other transactions can see what this one sees; of a session of `Database.snapshot` only."""
        name: str = self.info["snapshot"]
        return name

    @asynccontextmanager
    async def limited(self, seconds: float) -> AsyncIterator[None]:
        """For reading: statements inside are ended by the server after `seconds` each, and none begins later than that.

        Raises StatementTimedOut, and the transaction goes on. What was written inside is taken back in any case.
        """
        limit = max(1, int(seconds * 1000))
        try:
            async with self.begin_nested() as savepoint:
                await self.execute(LIMIT, {"limit": str(limit)})
                self.info["ends_at"] = monotonic() + seconds
                try:
                    yield
                finally:
                    del self.info["ends_at"]
                # With it goes the limit, which would otherwise hold until the end of the transaction.
                await savepoint.rollback()
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == QUERY_CANCELED:
                raise StatementTimedOut from error
            raise


class Database:
    """Hands out units of work over one pool of connections of one database role."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int,
        publish: Publish | None = None,
        statement_timeout_seconds: float = 60,
        idle_in_transaction_seconds: float = 60,
        is_borrowed: bool = False,
    ) -> None:
        """`is_borrowed`: the URL leads to a pooler that lends connections for one transaction each."""
        self._is_borrowed = is_borrowed
        self.engine: AsyncEngine = create_async_engine(
            url.replace("postgresql://", "postgresql+asyncpg://", 1),
            poolclass=AppPool,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=30,
            # The few that were used last, so that a burst does not keep all of them warm.
            pool_use_lifo=True,
            # The words of an error would quote them, and so documents and queries.
            hide_parameters=True,
            connect_args=_connect_arguments(
                {
                    "statement_timeout": str(int(statement_timeout_seconds * 1000)),
                    # A process that stands still inside a transaction would keep its rows from whoever takes over.
                    "idle_in_transaction_session_timeout": str(int(idle_in_transaction_seconds * 1000)),
                    # Full results from a vector index, whatever is filtered away afterwards (facts F13).
                    "hnsw.iterative_scan": "strict_order",
                    "hnsw.ef_search": "100",
                },
                is_borrowed=is_borrowed,
            ),
        )
        _check_at_checkout(self.engine)
        event.listen(self.engine.sync_engine, "before_cursor_execute", _count)
        if is_tracing():
            trace_engine(self.engine)
        self._alone = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._reading = self.engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._publish = publish

    @asynccontextmanager
    async def tenant(self, tenant_id: UUID, *, lock_wait_ms: int | None = None) -> AsyncIterator[TenantSession]:
        """One transaction as this tenant: committed at the end, rolled back by any exception.

        With `lock_wait_ms` no statement waits longer than that for a lock; see `is_lock_timeout`.
        """
        settings = {} if lock_wait_ms is None else {"lock_timeout": str(lock_wait_ms)}
        info = {"tenant": str(tenant_id), "settings": settings}
        async with TenantSession(self.engine, expire_on_commit=False, info=info) as session:
            yield session
            await self._commit(session)

    @asynccontextmanager
    async def snapshot(self, tenant_id: UUID, *, share: bool = False) -> AsyncIterator[TenantSession]:
        """One transaction as this tenant that only reads, and whose statements all see what had been committed at its
        beginning. With `share` other connections can see the same, by its name, for as long as it lasts."""
        info = {"tenant": str(tenant_id), "shares": share}
        async with TenantSession(self._reading, expire_on_commit=False, info=info) as session:
            await session.connection()
            yield session

    @asynccontextmanager
    async def operator(self, tenant_id: UUID | None = None) -> AsyncIterator[TenantSession]:
        """One transaction of an operator: it sees and writes the table of tenants, and of all else the rows of
        `tenant_id` only. Ask for it after the operator's secret was verified, and in commands."""
        info = {"tenant": str(tenant_id) if tenant_id is not None else "", "operator": "on"}
        async with TenantSession(self.engine, expire_on_commit=False, info=info) as session:
            yield session
            await self._commit(session)

    @asynccontextmanager
    async def system(self) -> AsyncIterator[SystemSession]:
        """One transaction without a tenant: committed at the end, rolled back by any exception."""
        async with SystemSession(self.engine, expire_on_commit=False) as session:
            yield session
            await self._commit(session)

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[SystemSession]:
        """For one statement without a tenant, which is a transaction of its own: a third of the round trips of `system`."""
        if self._is_borrowed:
            # Two messages of one statement could meet two sessions, unless a transaction holds them together.
            async with self.system() as session:
                yield session
            return
        async with SystemSession(self._alone, expire_on_commit=False) as session:
            yield session

    async def _commit(self, session: SystemSession) -> None:
        await session.commit()
        messages = session.info.pop("outbox", [])
        if messages and self._publish is not None:
            await self._publish(messages)

    async def close(self) -> None:
        await self.engine.dispose()

    async def schema_revision(self) -> str | None:
        """The newest migration that the database has. Raises what the driver raises if it does not answer."""
        async with self.statement() as session:
            found: str | None = await session.scalar(text("SELECT max(version_num) FROM alembic_version"))
            return found
