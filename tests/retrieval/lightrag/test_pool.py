"""The engine's pool: the fence of a workspace, lost connections, and what it takes from its surroundings."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from pydantic import SecretStr
from sqlalchemy import make_url

from app.db.acting import Acting, nobody_acts, note_caller
from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.pool import (
    LOST_CONNECTION,
    EngineConnection,
    EngineDatabase,
    EngineUnavailable,
    engine_workspace,
    inside,
    open_engine_database,
)
from app.retrieval.lightrag.reads import Reads
from app.settings import Settings, UnsafeEnvironment
from tests.cluster import Cluster

ADD = "INSERT INTO lightrag_graph_nodes (workspace, id) VALUES ($1, $2) ON CONFLICT DO NOTHING"


async def names(reads: Reads) -> set[str]:
    return {row["id"] for row in await reads.fetch("SELECT id FROM lightrag_graph_nodes WHERE id LIKE 'pool %'")}


async def add(pool: EngineDatabase, workspace: str, name: str) -> None:
    async with pool.transaction() as connection:
        await connection.execute(ADD, workspace, name)


@asynccontextmanager
async def another_pool(settings: Settings, url: str, **options: object) -> AsyncIterator[EngineDatabase]:
    """A pool beside the process's own, which LightRAG does not know of."""
    pool = EngineDatabase(url, pool_size=2, statement_timeout_seconds=settings.statement_timeout_seconds)
    await pool.initdb()
    yield pool
    await pool.close()


async def test_statements_see_and_write_the_rows_of_one_workspace(pool: EngineDatabase) -> None:
    with engine_workspace("w_pool_a"):
        await add(pool, "w_pool_a", "pool one")
        assert await names(pool) == {"pool one"}
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await add(pool, "w_pool_b", "pool two")
    with engine_workspace("w_pool_b"):
        assert await names(pool) == set()
    assert await names(pool) == set()


async def test_a_transaction_says_who_it_acts_for_in_the_message_that_begins_it(
    pool: EngineDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, sent, execute = uuid4(), list[str](), EngineConnection.execute

    async def noted(self: EngineConnection, query: str, *arguments: Any, **options: Any) -> Any:
        sent.append(query)
        return await execute(self, query, *arguments, **options)

    settings = "SELECT current_setting('app.tenant_id', true), current_setting('app.audit', true)"
    with engine_workspace("w_pool_a"), nobody_acts():
        note_caller(Acting("operator", "it's a test"))
        await pool.fetch(settings)
        monkeypatch.setattr(EngineConnection, "execute", noted)
        async with pool.transaction(tenant) as connection:
            inside_it = await connection.fetchrow(settings)
        assert [query.split()[0] for query in sent] == ["BEGIN;", "COMMIT"]
        assert inside_it[0] == str(tenant)
        assert json.loads(inside_it[1])["action"] == "it's a test"
        assert not any(value for row in await pool.fetch(settings) for value in row)


async def test_many_tasks_share_connections_without_sharing_fences(pool: EngineDatabase) -> None:
    async def work(number: int) -> set[str]:
        with engine_workspace(f"w_many_{number % 7}"):
            await add(pool, f"w_many_{number % 7}", f"pool {number % 7}")
            return await names(pool)

    found = await asyncio.gather(*(work(number) for number in range(70)))
    assert found == [{f"pool {number % 7}"} for number in range(70)]


async def test_the_engine_runs_as_a_role_that_owns_nothing(pool: EngineDatabase) -> None:
    (row,) = await pool.fetch("SELECT current_user AS role")
    assert row["role"] == "trellis_engine"
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await pool.fetch("CREATE TABLE own (id int)")


async def test_small_tenants_search_the_shared_index_to_the_end(pool: EngineDatabase) -> None:
    (row,) = await pool.fetch("SELECT current_setting('hnsw.iterative_scan') AS scan")
    assert row["scan"] == "strict_order"


async def test_connections_that_were_cut_are_replaced(
    pool: EngineDatabase, cluster: Cluster, settings: Settings
) -> None:
    name = make_url(settings.engine_database_url.get_secret_value()).database
    admin = await asyncpg.connect(cluster.admin_url)
    cut = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE usename = 'trellis_engine' AND datname = $1 AND application_name = 'trellis engine'"
    )
    try:
        with engine_workspace("w_cut"):
            await add(pool, "w_cut", "pool cut")
            assert await admin.fetchval(cut, name) > 0
            assert await names(pool) == {"pool cut"}
            await admin.fetchval(cut, name)
            await add(pool, "w_cut", "pool again")
            assert await names(pool) == {"pool cut", "pool again"}
    finally:
        await admin.close()


async def test_a_connection_that_is_cut_under_a_statement_is_replaced(pool: EngineDatabase) -> None:
    cut: list[int] = []

    async def run(connection: asyncpg.Connection) -> int:
        pid: int = await connection.fetchval("SELECT pg_backend_pid()")
        if not cut:
            cut.append(pid)
            with suppress(asyncpg.PostgresError):
                await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            # The pool takes it back when it hears of the end.
            await asyncio.sleep(0.1)
            raise asyncpg.ConnectionDoesNotExistError
        return pid

    assert await pool._run_with_retry(run) not in {0, *cut}


async def test_a_server_that_comes_back_is_used_again_by_the_same_pool(settings: Settings) -> None:
    url = make_url(settings.engine_database_url.get_secret_value())
    port = url.port
    assert port is not None

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True)

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    there = url.set(host="127.0.0.1", port=address).render_as_string(hide_password=False)
    async with another_pool(settings, there) as pool:
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await pool.fetch("SELECT 1")
        server = await asyncio.start_server(relay, "127.0.0.1", address)
        assert await pool.fetch("SELECT 1")
    server.close()


async def test_a_process_has_one_pool(pool: EngineDatabase, settings: Settings) -> None:
    with pytest.raises(RuntimeError, match="open already"):
        await open_engine_database(settings)


@pytest.mark.parametrize("name", ["POSTGRES_WORKSPACE", "WORKSPACE", "ENTITY_TYPES"])
async def test_a_variable_that_would_redirect_the_engine_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "shared")
    with pytest.raises(UnsafeEnvironment, match=name):
        await open_engine_database(settings)


@pytest.mark.parametrize("name", ["config.ini", ".env"])
async def test_a_file_that_would_redirect_the_engine_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("[postgres]\nworkspace=shared\nPOSTGRES_WORKSPACE=shared\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnsafeEnvironment, match=name):
        await open_engine_database(settings)


async def test_the_password_is_not_put_where_others_can_read_it(settings: Settings) -> None:
    url = make_url(settings.engine_database_url.get_secret_value()).set(password="very secret")
    async with another_pool(settings, SecretStr(str(url)).get_secret_value()) as pool:
        assert "very secret" not in str(os.environ)
        assert pool.password == ""


async def test_reads_of_a_snapshot_see_what_was_there_when_it_was_taken(
    pool: EngineDatabase, database: Database
) -> None:
    with engine_workspace("w_snapshot"):
        await add(pool, "w_snapshot", "pool before")
        async with database.snapshot(uuid4(), share=True) as session:
            await add(pool, "w_snapshot", "pool after")
            async with pool.snapshot(session.snapshot) as reads:
                assert await asyncio.gather(*(names(reads) for _ in range(3))) == [{"pool before"}] * 3
                with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                    await reads.fetch(ADD, "w_snapshot", "pool never")
        assert await names(pool) == {"pool before", "pool after"}


async def test_a_snapshot_that_is_gone_is_an_outage_and_harms_no_connection(
    pool: EngineDatabase, database: Database
) -> None:
    async with database.snapshot(uuid4(), share=True) as session:
        name = session.snapshot
    with engine_workspace("w_gone"):
        for _ in range(pool.max + 1):
            with pytest.raises(EngineUnavailable):
                async with pool.snapshot(name):
                    raise AssertionError("there is no such snapshot")
        await add(pool, "w_gone", "pool one")
        assert await names(pool) == {"pool one"}


@pytest.mark.parametrize("is_known", [False, True], ids=["at once", "after the pool heard of it"])
async def test_a_snapshot_whose_connection_is_cut_is_an_outage(pool: EngineDatabase, *, is_known: bool) -> None:
    ref = WorkspaceRef(TenantId(uuid4()), WorkspaceId(uuid4()), 7)

    async def search() -> None:
        with inside(ref):
            async with pool.snapshot() as reads:
                with suppress(*LOST_CONNECTION):
                    await reads.fetch("SELECT pg_terminate_backend(pg_backend_pid())")
                if is_known:
                    await asyncio.sleep(0.1)
                await reads.fetch("SELECT 1")

    with pytest.raises(EngineUnavailable):
        await search()
    assert await pool.fetch("SELECT 1")


async def test_what_broke_off_before_it_was_executed_leaves_no_transaction_open(
    database: Database, settings: Settings
) -> None:
    """A statement that is prepared opens one, which ends when it is executed: a task may be cancelled in between."""
    url = settings.engine_database_url.get_secret_value()
    pool = EngineDatabase(url, pool_size=1, statement_timeout_seconds=5)
    await pool.initdb()

    async def cancelled(connection: asyncpg.Connection) -> None:
        # The first may come with the end of others that are not needed any more, which ends the transaction as well.
        kept = [await connection.prepare(f"SELECT {n} FROM lightrag_graph_nodes") for n in range(2)]
        assert kept
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await pool._run_with_retry(cancelled)
    async with database.snapshot(uuid4(), share=True) as session, pool.snapshot(session.snapshot) as reads:
        assert await reads.fetch("SELECT 1 AS one")
    await pool.close()
