"""Graphs that nobody owns any more are counted and removed; so are versions that only a graph still names."""

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from app.bootstrap import Worker, open_worker
from app.db.session import Database
from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.age.rows import AgeRows
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.settings import Settings
from tests.age.conftest import engine_pool, new_ref
from tests.factories import Tenancy

pytestmark = pytest.mark.age

COUNT = "SELECT remaining FROM tenant_residue(:t, CAST(:ids AS uuid[]), '{}') WHERE table_name = 'graphs'"
UNOWNED = "SELECT workspace_id, version_id FROM unowned_graph_rows('', 100000, 10000) WHERE last_graph IS NULL"


@pytest.fixture(scope="module")
async def worker(settings: Settings) -> AsyncIterator[Worker]:
    async with open_worker(settings) as worker:
        yield worker


@pytest.fixture
def pool(worker: Worker) -> EngineDatabase:
    return engine_pool()


async def opened(pool: EngineDatabase, tenancy: Tenancy, version: UUID) -> WorkspaceRef:
    ref = await new_ref(tenancy, "age")
    node = {"entity_id": "Ada", "source_id": f"{version}-chunk-000", "description": "x"}
    with inside(ref):
        await AgeRows(pool, ref).prepare()
        await AgeRows(pool, ref).write("nodes", {("Ada",): node})
    return ref


async def unowned(database: Database, ref: WorkspaceRef) -> list[UUID | None]:
    async with database.system() as session:
        rows = await session.execute(text(UNOWNED))
        return [row.version_id for row in rows if row.workspace_id == ref.workspace_id]


async def counted(tenancy: Tenancy, ref: WorkspaceRef) -> int:
    async with tenancy.owner_database.operator(tenancy.tenant_id) as session:
        found = await session.scalar(text(COUNT), {"t": tenancy.tenant_id, "ids": [str(ref.workspace_id)]})
    return int(found)


async def test_a_version_that_only_a_graph_names_is_unowned(
    pool: EngineDatabase, tenancy: Tenancy, database: Database
) -> None:
    version = uuid4()
    ref = await opened(pool, tenancy, version)
    assert await unowned(database, ref) == [version]


async def test_a_graph_without_a_workspace_is_removed(
    worker: Worker, pool: EngineDatabase, tenancy: Tenancy, database: Database
) -> None:
    ref = await opened(pool, tenancy, uuid4())
    assert await counted(tenancy, ref) == 1
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        await session.execute(text("DELETE FROM workspaces WHERE id = :id"), {"id": ref.workspace_id})
    assert await unowned(database, ref) == [None]
    await worker.container.graph.index.discard(ref.workspace_id)
    assert await unowned(database, ref) == []
    assert await counted(tenancy, ref) == 0


async def test_a_graph_in_use_is_not_dropped(pool: EngineDatabase, tenancy: Tenancy) -> None:
    ref = await opened(pool, tenancy, uuid4())
    with inside(ref):
        (row,) = await pool.fetch("SELECT drop_graph($1) AS gone", ref.workspace_id)
    assert not row["gone"]
    assert await counted(tenancy, ref) == 1


async def test_graphs_are_read_some_at_a_time(
    worker: Worker, pool: EngineDatabase, tenancy: Tenancy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.domain.ingestion.leftovers.GRAPHS_AT_ONCE", 1)
    version = uuid4()
    refs = [await opened(pool, tenancy, version) for _ in range(3)]
    found, _ = await worker.leftovers._unowned_engine_rows()
    assert {ref.workspace_id for ref in refs} == {job.workspace_id for job in found if job.version_id == version}
