"""Behind PgBouncer in transaction mode: the same answers, and nothing of one transaction is left for the next.

PgBouncer gets two server connections and the process five, so that transactions do change places.
"""

import asyncio
import os
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from uuid import UUID

import asyncpg
import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.engine import make_url

from app.bootstrap import Worker, open_worker
from app.db.session import Database
from app.domain.ingestion.moving import DirectConnectionNeeded
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService
from app.jobs import IndexGraph, ProcessVersion
from app.main import create_app
from app.settings import Settings
from tests.factories import Tenancy
from workers.task import attempt

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer (Debian's package `pgbouncer`) is not installed")
SERVER_CONNECTIONS = 2


@pytest.fixture(scope="module")
def pooler_url(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The application role's URL through a PgBouncer of this module's own."""
    folder = tmp_path_factory.mktemp("pgbouncer")
    folder.chmod(0o755)
    server = make_url(settings.database_url.get_secret_value())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"[databases]\n{server.database} = host={server.host} port={server.port} user={server.username} "
        f"password={server.password} dbname={server.database}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = transaction\ndefault_pool_size = {SERVER_CONNECTIONS}\nserver_round_robin = 1\n"
    )
    assert PGBOUNCER is not None
    as_user = ["-u", "nobody"] if os.geteuid() == 0 else []
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([PGBOUNCER, *as_user, str(config)], stdout=log, stderr=log)
    deadline = time.monotonic() + 20
    while socket.socket().connect_ex(("127.0.0.1", port)):
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.05)
    yield server.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
    process.terminate()
    process.wait(10)


@pytest.fixture(scope="module")
async def worker(settings: Settings, pooler_url: str) -> AsyncIterator[Worker]:
    changes = {"database_url": SecretStr(pooler_url), "database_pooler": "transaction"}
    async with open_worker(settings.model_copy(update=changes)) as worker:
        yield worker


async def test_documents_are_ingested_and_asked_through_it(
    worker: Worker, tenancy: Tenancy, owner_database: Database
) -> None:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    key = await TenantService(owner_database).create_key(tenancy.tenant_id, name="test", role=Role.ADMIN)
    app = create_app(worker.container)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url=f"http://trellis/v1/workspaces/{workspace_id}",
            headers={"Authorization": f"Bearer {key}"},
        ) as client,
    ):  # fmt: skip

        async def upload(number: int) -> tuple[str, UUID]:
            text = f"Marie Curie met Number {number} in Paris. They spoke of radium {number}."
            answer = await client.post("/documents", json={"title": f"Note {number}", "text": text})
            assert answer.status_code == 202, answer.text
            document = answer.json()["documents"][0]
            version_id = UUID(document["version"]["id"])
            await attempt(worker.jobs, ProcessVersion(tenancy.tenant_id, workspace_id, version_id), runs=1)
            return document["id"], version_id

        for document_id, version_id in await asyncio.gather(*(upload(number) for number in range(6))):
            # One after the other: a busy workspace sends others away.
            await attempt(worker.jobs, IndexGraph(tenancy.tenant_id, workspace_id, version_id), runs=1)
            shown = await client.get(f"/documents/{document_id}")
            assert shown.json()["status"] == "ready", shown.text
        for mode in ("lazy", "baseline", "mix"):
            asked = await client.post("/query", json={"query": "Whom did Marie Curie meet in Paris?", "mode": mode})
            assert asked.status_code == 200, asked.text
            assert "Curie" in asked.text
        assert (await client.get("/entities")).status_code == 200
        assert (await client.get("/documents")).json()["items"]


async def test_each_transaction_acts_for_its_own_tenant(
    pooler_url: str, tenancy: Tenancy, other_tenancy: Tenancy
) -> None:
    await tenancy.add_workspace()
    database = Database(pooler_url, pool_size=5, is_borrowed=True, statement_timeout_seconds=7)
    asked = text("SELECT current_setting('app.tenant_id'), count(*), current_setting('statement_timeout'), "
                 "current_setting('hnsw.ef_search') FROM workspaces")  # fmt: skip

    async def ask(tenant: Tenancy | None) -> tuple[str, int, str, str]:
        found = database.statement() if tenant is None else database.tenant(tenant.tenant_id)
        async with found as session:
            row = (await session.execute(asked)).one()
            return (row[0], row[1], row[2], row[3])

    async def unset() -> bool:
        async with database.system() as session:
            return not await session.scalar(text("SELECT current_setting('app.tenant_id', true)"))

    try:
        turns = [tenancy, other_tenancy] * 20
        found = await asyncio.gather(*(ask(each) for each in turns))
        assert found == [(str(each.tenant_id), int(each is tenancy), "7s", "100") for each in turns]
        assert all(await asyncio.gather(*(unset() for _ in range(10))))
    finally:
        await database.close()


async def test_nothing_is_left_in_the_sessions(worker: Worker, pooler_url: str) -> None:
    for _ in range(2 * SERVER_CONNECTIONS):
        connection = await asyncpg.connect(pooler_url, statement_cache_size=0)
        found = await connection.fetchrow(
            "SELECT (SELECT count(*) FROM pg_prepared_statements WHERE name <> ''), current_setting('app.tenant_id', true), "
            "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"
        )
        await connection.close()
        assert (found[0], found[1] or "", found[2]) == (0, "", 0)


async def test_what_needs_a_session_of_its_own_says_so(worker: Worker) -> None:
    with pytest.raises(DirectConnectionNeeded):
        worker.container.graph_move()
