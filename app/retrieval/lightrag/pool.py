"""The engine's connections: one pool a process that runs every statement inside the fence of one workspace.

It takes the place of the pool that LightRAG would make from `POSTGRES_*` variables. Which workspace a task works for
travels in a context variable; without one all tables look empty.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import asyncpg
from lightrag.kg.postgres_impl import TRANSIENT_DB_EXCEPTIONS, ClientManager, PostgreSQLDB
from pgvector.asyncpg import register_vector
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_exponential

from app.db.acting import audit_setting
from app.db.counting import note_statement
from app.db.pools import EnginePool
from app.db.session import entering
from app.db.traced import note_query
from app.errors import Unavailable
from app.retrieval.contract import Lease, LeaseLost, WorkspaceRef
from app.retrieval.lightrag import scope
from app.retrieval.lightrag.logging import quieten_engine
from app.retrieval.lightrag.reads import OneConnection, Reads
from app.settings import Settings, refuse_engine_hijack
from app.tracing import is_tracing

# The server's farewell to a connection is a lost connection too, and so is the driver's complaint when the farewell has
# come but the end of the stream has not.
LOST_CONNECTION: tuple[type[BaseException], ...] = (
    *TRANSIENT_DB_EXCEPTIONS,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InternalClientError,
)


class EngineUnavailable(Unavailable):
    """The graph's database could not be reached, or took too long."""

    code = "engine_unavailable"
    title = "The graph engine is not available"


@dataclass(frozen=True)
class Fence:
    """The rows a statement may see: LightRAG's of one workspace, ours of one tenant. Empty names are no rows.

    With `graph` it sees that graph in Apache AGE instead, as its role, and nothing else.
    """

    workspace: str = ""
    tenant_id: str = ""
    graph: str = ""


NOWHERE = Fence()
# Not known: whoever comes next enters its own.
ANYWHERE = Fence(graph="?")
_fence: ContextVar[Fence] = ContextVar("engine_fence", default=NOWHERE)
_held: ContextVar[Lease | None] = ContextVar("engine_lease", default=None)

_ENTER = "SELECT set_config('app.workspace',$1,false),set_config('app.tenant_id',$2,false)"
_ENTER_GRAPH = """
SELECT set_config('role',$3,false),set_config('search_path',$4,false),
       set_config('app.workspace',$1,false),set_config('app.tenant_id',$2,false)"""
_HOLD = "SELECT public.hold_lease($1,$2,$3)"
NO_ROLE = "none"
DEFAULT_PATH = '"$user", public'
GRAPH_PATH = "ag_catalog, public"
_BEGIN = "BEGIN"
_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SNAPSHOT_NAME = re.compile("[0-9A-F-]+")
CONNECT_TIMEOUT_SECONDS = 10
# A statement that the server does not end in time is given up by the client a little later: the network is gone.
TIMEOUT_MARGIN_SECONDS = 5
# A refused or lost connection is tried again within about two seconds; longer outages are the caller's to wait for.
ATTEMPTS = 3
BACKOFF_SECONDS = 0.3
BACKOFF_MAX_SECONDS = 1.5


@contextmanager
def engine_workspace(name: str, tenant_id: UUID | None = None) -> Iterator[None]:
    """Everything the engine runs inside, tasks started there included, sees and writes this workspace only.

    With `tenant_id` the tenant's own rows can be seen too, as far as the engine's role may.
    """
    current = _fence.get()
    known = current.tenant_id if current.workspace == name else ""
    token = _fence.set(Fence(name, str(tenant_id) if tenant_id else known))
    try:
        yield
    finally:
        _fence.reset(token)


@contextmanager
def in_graph(name: str) -> Iterator[None]:
    """Statements inside run as the role of this graph in Apache AGE, which can reach its schema alone."""
    token = _fence.set(replace(_fence.get(), graph=name))
    try:
        yield
    finally:
        _fence.reset(token)


@contextmanager
def only_while_held(lease: Lease) -> Iterator[None]:
    """Each statement inside is refused with `LeaseLost` once the lease has passed on, and keeps it from passing on until it is in.

    For storages that write as they go: a holder that slept would otherwise write into what its successor writes.
    """
    token = _held.set(lease)
    try:
        yield
    finally:
        _held.reset(token)


@contextmanager
def inside(ref: WorkspaceRef) -> Iterator[None]:
    """The fence of a workspace and its tenant. Raises `EngineUnavailable` for a database that does not answer."""
    with engine_workspace(ref.engine_name, ref.tenant_id):
        try:
            yield
        except (*LOST_CONNECTION, asyncpg.QueryCanceledError) as error:
            raise EngineUnavailable(
                "the graph's database does not answer; try again later", error_type=type(error).__name__
            ) from error


class EngineConnection(asyncpg.Connection):  # type: ignore[misc]
    """A connection that remembers which fence its session is in, so that only a change costs a round trip."""

    fence = NOWHERE
    is_doubtful = False

    def doubt(self) -> None:
        """A statement broke off: it may have been prepared and not executed, which leaves its transaction open unseen."""
        self.is_doubtful = True

    async def enter(self, fence: Fence) -> None:
        if self.fence == fence:
            return
        if fence.graph or self.fence.graph:
            place = (fence.graph, GRAPH_PATH) if fence.graph else (NO_ROLE, DEFAULT_PATH)
            await self.execute(_ENTER_GRAPH, fence.workspace, fence.tenant_id, *place)
        else:
            await self.execute(_ENTER, fence.workspace, fence.tenant_id)
        self.fence = fence

    def lose_track(self) -> None:
        """What was set in a transaction that ends now may be taken back by it."""
        if self.fence != _fence.get():
            self.fence = ANYWHERE


class _FencedConnection(OneConnection):
    """Each statement inside the fence of the task that asks."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        # Asked for at once: the pool takes back what it lent as soon as the connection is lost.
        self._enter = connection.enter

    async def _fetch(self, statement: str, *arguments: Any) -> Sequence[Any]:
        await self._enter(_fence.get())
        return await super()._fetch(statement, *arguments)


class EngineDatabase(PostgreSQLDB):  # type: ignore[misc]
    """LightRAG's database object over our pool, as the engine's role: fenced, bounded, without DDL.

    A lost connection is replaced by the pool itself, so an error never closes the pool under other tenants (facts F8).
    """

    def __init__(
        self, url: str, *, pool_size: int, statement_timeout_seconds: float, idle_in_transaction_seconds: float = 60
    ) -> None:
        # The base class wants these fields; what connects is the URL, so that no password lies about in clear.
        super().__init__(
            {
                "host": None,
                "port": None,
                "user": "",
                "password": "",
                "database": "",
                "workspace": None,
                "max_connections": pool_size,
                "enable_vector": True,
                "connection_retry_attempts": ATTEMPTS,
                "connection_retry_backoff": BACKOFF_SECONDS,
                "connection_retry_backoff_max": BACKOFF_MAX_SECONDS,
                "pool_close_timeout": CONNECT_TIMEOUT_SECONDS,
            }
        )
        self._transient_exceptions = LOST_CONNECTION
        self._url = url
        self._statement_timeout_seconds = statement_timeout_seconds
        self._idle_in_transaction_seconds = idle_in_transaction_seconds
        self._loop = asyncio.get_running_loop()

    async def initdb(self) -> None:
        """Open the pool. Nothing connects before the first statement, so a process starts without its database."""
        self.pool = await EnginePool(
            self._url,
            max_size=self.max,
            timeout=CONNECT_TIMEOUT_SECONDS,
            command_timeout=self._statement_timeout_seconds + TIMEOUT_MARGIN_SECONDS,
            connection_class=EngineConnection,
            init=_prepare,
            setup=_enter_fence,
            reset=_keep_session,
            server_settings={
                "application_name": "trellis engine",
                "statement_timeout": str(int(self._statement_timeout_seconds * 1000)),
                # A process that stands still inside a transaction would keep the workspace from whoever takes over.
                "idle_in_transaction_session_timeout": str(int(self._idle_in_transaction_seconds * 1000)),
                # Neither limit strikes between the messages of one statement; this one does.
                "transaction_timeout": str(int(2 * self._idle_in_transaction_seconds * 1000)),
                # A search goes on until it has as many results as were asked for, whatever is filtered away (facts F13).
                "hnsw.iterative_scan": "strict_order",
                "hnsw.ef_search": "100",
                # A plan for any workspace would open the partitions of all, and not use the index of the large ones.
                "plan_cache_mode": "force_custom_plan",
            },
        )

    async def _before_sleep(self, retry_state: RetryCallState) -> None:
        """Keep the pool between two attempts: it replaces dead connections one by one."""

    async def check_tables(self) -> None:
        """Leave the schema to the migrations."""

    async def _create_vector_index(self, table_name: str, embedding_dim: int) -> None:
        """Leave indexes to the registration of the embedding profile."""

    async def _run_with_retry(self, operation: Callable[[asyncpg.Connection], Awaitable[Any]], **options: Any) -> Any:
        """Every statement of LightRAG's own storages; refused to tasks whose operation is over."""

        lease = _held.get()

        async def doubted(connection: Any) -> Any:
            # Asked for at once: what the pool lent is taken back as soon as the connection is lost.
            doubt = connection.doubt
            try:
                if lease is None:
                    return await operation(connection)
                async with connection.transaction():
                    if not await connection.fetchval(_HOLD, lease.ref.tenant_id, lease.ref.workspace_id, lease.owner):
                        raise LeaseLost("the workspace's lease has passed to somebody else")
                    return await operation(connection)
            except BaseException:
                doubt()
                raise

        graph = in_graph(options["graph_name"]) if options.get("with_age") else nullcontext()
        note_statement()
        with scope.calling(), graph:
            return await super()._run_with_retry(doubted, **options)

    async def configure_age(self, connection: asyncpg.Connection, graph_name: str) -> None:
        """The connection has entered the graph already; LightRAG would make the graph here."""

    async def fetch(self, statement: str, *arguments: Any) -> Sequence[Any]:
        """Rows of one statement inside the workspace's fence; a lost connection is tried again."""

        async def run(connection: asyncpg.Connection) -> Any:
            return await connection.fetch(statement, *arguments)

        rows: Sequence[Any] = await self._run_with_retry(run)
        return rows

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID | None = None) -> AsyncIterator[asyncpg.Connection]:
        """One transaction inside the workspace's fence, and inside the tenant's where our own tables are touched too.

        Beginning it, which says in the same message who it acts for, is tried again over a lost connection; what happens
        inside is not.
        """
        settings = {} if tenant_id is None else {"app.tenant_id": str(tenant_id), "app.audit": audit_setting()}
        connection = await self._begin(f"{_BEGIN}; {entering(settings)}" if settings else _BEGIN)
        try:
            yield connection
            await connection.execute("COMMIT")
        finally:
            await self._end(connection)

    @asynccontextmanager
    async def snapshot(self, name: str | None = None) -> AsyncIterator[Reads]:
        """Reads inside the workspace's fence that see one moment, or what the transaction sees that shares its snapshot by `name`.

        They run one after the other on one connection: a search that held several while it waits for another one could
        wait for its like for ever.
        """
        if name is not None and not _SNAPSHOT_NAME.fullmatch(name):
            raise ValueError("that is no name of a snapshot")
        share = "" if name is None else f"; SET TRANSACTION SNAPSHOT '{name}'"
        try:
            connection = await self._begin(f"{_BEGIN_READING}{share}")
        except (asyncpg.UndefinedObjectError, asyncpg.InvalidParameterValueError) as error:
            raise EngineUnavailable("the search's snapshot is gone with its connection; try again") from error
        lose_track = connection.lose_track
        try:
            yield _FencedConnection(connection)
        finally:
            # The end of the transaction takes back what was set in it.
            lose_track()
            await self._end(connection)

    async def _begin(self, first: str) -> Any:
        """A connection that has run `first`, which is tried again over a lost one."""
        await self._ensure_pool()
        async for attempt in AsyncRetrying(
            stop=stop_after_attempt(ATTEMPTS),
            retry=retry_if_exception_type(self._transient_exceptions),
            wait=wait_exponential(multiplier=BACKOFF_SECONDS, max=BACKOFF_MAX_SECONDS),
            reraise=True,
        ):
            with attempt:
                connection = await self.pool.acquire(timeout=CONNECT_TIMEOUT_SECONDS)
                try:
                    await connection.execute(first)
                except BaseException:
                    await self._end(connection)
                    raise
                return connection
        raise AssertionError("the last attempt returns or raises")

    async def _end(self, connection: Any) -> None:
        """Give a connection back; asyncpg's own way to end a transaction that is open reports it as a fault."""
        try:
            # One that was lost has nothing to end, and the caller knows of it.
            with suppress(*LOST_CONNECTION):
                if not connection.is_closed() and connection.is_in_transaction():
                    await connection.execute("ROLLBACK")
        finally:
            await self.pool.release(connection)

    async def close(self) -> None:
        """Close the pool and make room for another one."""
        if ClientManager._instances["db"] is self:
            ClientManager._instances.update(db=None, ref_count=0, vector_signature=None)
        await self._reset_pool()


async def _prepare(connection: Any) -> None:
    await register_vector(connection)
    if is_tracing():
        connection.add_query_logger(note_query)


async def _enter_fence(connection: Any) -> None:
    await connection.enter(_fence.get())


async def _keep_session(connection: Any) -> None:
    """Nothing to undo: asyncpg has rolled back what it knows of, and `enter` sets the workspace of the next user.

    The statement that LightRAG resets with is half of all its round trips (facts, section 11).
    """
    if connection.is_doubtful:
        await connection.execute("ROLLBACK")
        connection.is_doubtful = False


async def open_engine_database(settings: Settings) -> EngineDatabase:
    """The process's pool, bound to the running loop; LightRAG's storages find it where they look for their own.

    Raises `UnsafeEnvironment` where the surroundings would redirect LightRAG (facts F9), and RuntimeError if there is a
    pool already: LightRAG knows one database a process.
    """
    refuse_engine_hijack()
    quieten_engine()
    if ClientManager._instances["db"] is not None:
        raise RuntimeError("the engine's pool of this process is open already")
    database = EngineDatabase(
        settings.engine_database_url.get_secret_value(),
        pool_size=settings.engine_pool_size,
        statement_timeout_seconds=settings.statement_timeout_seconds,
        idle_in_transaction_seconds=settings.idle_in_transaction_seconds,
    )
    await database.initdb()
    # The lock is LightRAG's and may still belong to a loop that is gone. The count of one is our own use: the pool stays
    # open when the last instance is closed. Without a signature LightRAG does not compare its environment with ours.
    ClientManager._lock = asyncio.Lock()
    ClientManager._instances.update(db=database, ref_count=1, vector_signature=None)
    return database
