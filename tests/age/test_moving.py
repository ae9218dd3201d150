"""A workspace's graph moves from one store to the other and back: whole, row by row, and on again after a kill."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from app.bootstrap import Container, open_container
from app.retrieval.contract import GraphStoreChanged, GraphStoreName, Lease, WorkspaceBusy, WorkspaceRef
from app.retrieval.lightrag.age.rows import AgeRows
from app.retrieval.lightrag.moving import MovedGraphDiffers
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.rows_store import KINDS, TableRows
from app.settings import Settings
from tests.age import killed_move
from tests.age.conftest import HOSTILE, engine_pool, fill, new_ref
from tests.factories import Tenancy

pytestmark = pytest.mark.age

SIZE = {"entities": 1_200, "relations": 2_000, "seed": 4}


@pytest.fixture(scope="module")
async def container(settings: Settings) -> AsyncIterator[Container]:
    async with open_container(settings) as container:
        yield container


@pytest.fixture
def pool(container: Container) -> EngineDatabase:
    return engine_pool()


async def held(pool: EngineDatabase, ref: WorkspaceRef) -> dict[str, dict[str, object]]:
    """All rows by store and kind."""
    found: dict[str, dict[str, object]] = {}
    with inside(ref):
        for store, rows in (("table", TableRows(pool, ref)), ("age", AgeRows(pool, ref))):
            pages = [page for kind in KINDS async for page in rows.pages(kind)]
            found[store] = {json.dumps(key): value for page in pages for key, value in page}
    return found


async def move(container: Container, ref: WorkspaceRef, to: GraphStoreName) -> int:
    moved = await container.graph_move().run(ref.tenant_id, ref.workspace_id, to, lambda _: None, drain_seconds=0)
    return moved.rows


async def store_of(tenancy: Tenancy, ref: WorkspaceRef) -> str:
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        found = await session.scalar(
            text("SELECT graph_store FROM workspaces WHERE id = :id"), {"id": ref.workspace_id}
        )
    return str(found)


async def test_there_and_back_every_row_is_the_same(
    container: Container, pool: EngineDatabase, tenancy: Tenancy
) -> None:
    ref = await new_ref(tenancy)
    await fill(TableRows(pool, ref), ref, **SIZE)
    before = (await held(pool, ref))["table"]
    assert await move(container, ref, "age") == len(before)
    assert await store_of(tenancy, ref) == "age"
    assert await held(pool, ref) == {"table": {}, "age": before}
    assert await move(container, ref, "age") == 0
    assert await move(container, ref, "table") == len(before)
    assert await held(pool, ref) == {"table": before, "age": {}}
    with inside(ref):
        assert (await pool.fetch("SELECT to_regnamespace(graph_name($1)) IS NULL AS gone", ref.workspace_id))[0]["gone"]


@pytest.mark.parametrize(("to", "writes"), [("age", 1), ("age", 4), ("table", 4)])
async def test_a_killed_move_leaves_the_graph_and_goes_on(
    container: Container, pool: EngineDatabase, tenancy: Tenancy, settings: Settings, to: GraphStoreName, writes: int
) -> None:
    start = "table" if to == "age" else "age"
    ref = await new_ref(tenancy, start)
    rows = TableRows(pool, ref) if start == "table" else AgeRows(pool, ref)
    await fill(rows, ref, **SIZE)
    before = (await held(pool, ref))[start]
    killed = _move_in_a_process(settings, ref, to, writes)
    assert killed.returncode == -9, killed.stderr
    assert await store_of(tenancy, ref) == start
    left = await held(pool, ref)
    assert left[start] == before
    assert len(left[to]) < len(before)
    assert await move(container, ref, to) == len(before)
    assert await held(pool, ref) == {start: {}, to: before}


async def test_what_is_written_during_the_copy_is_there_after_the_move(
    container: Container, pool: EngineDatabase, tenancy: Tenancy
) -> None:
    ref = await new_ref(tenancy)
    await fill(TableRows(pool, ref), ref, **SIZE)
    workspace = await container.workspaces.open(ref.tenant_id, ref.workspace_id)
    await container.graph.moves.copy(workspace, "age")
    with inside(ref):
        rows = TableRows(pool, ref)
        await rows.write("nodes", {("new",): {"entity_id": "new", "description": "came later"}})
        await rows.write("edges", {(HOSTILE[0], "new") if HOSTILE[0] < "new" else ("new", HOSTILE[0]): {"weight": 3}})
        await rows.write("nodes", {(HOSTILE[1],): {"entity_id": HOSTILE[1], "description": "changed"}})
        await rows.delete("nodes", [("Name 1",), ("Name 2",)])
    before = (await held(pool, ref))["table"]
    with pytest.raises(MovedGraphDiffers):
        await container.graph.moves.verify(workspace, "age")
    await move(container, ref, "age")
    assert (await held(pool, ref))["age"] == before


async def test_whoever_opened_the_workspace_before_the_move_writes_nothing(
    container: Container, pool: EngineDatabase, tenancy: Tenancy
) -> None:
    ref = await new_ref(tenancy)
    workspace = await container.workspaces.open(ref.tenant_id, ref.workspace_id)
    await fill(TableRows(pool, ref), ref, entities=30, relations=30, seed=1)
    await move(container, ref, "age")
    before = await held(pool, ref)
    stale = Lease(workspace.ref, "test", 0)
    index = container.graph.index
    async with index._instances.use(workspace) as instance:
        with pytest.raises(GraphStoreChanged):
            await index._writes.run(instance.rag, stale, never)
    assert await held(pool, ref) == before


async def test_a_second_move_is_refused_until_the_first_has_ended(
    container: Container, pool: EngineDatabase, tenancy: Tenancy
) -> None:
    ref = await new_ref(tenancy)
    await fill(TableRows(pool, ref), ref, entities=30, relations=30, seed=1)
    before = (await held(pool, ref))["table"]
    is_draining = asyncio.Event()

    def say(line: str) -> None:
        if "uses age now" in line:
            is_draining.set()

    first = asyncio.create_task(
        container.graph_move().run(ref.tenant_id, ref.workspace_id, "age", say, drain_seconds=600)
    )
    await is_draining.wait()
    with pytest.raises(WorkspaceBusy):
        await move(container, ref, "table")
    first.cancel()
    await asyncio.wait([first])
    assert await held(pool, ref) == {"table": before, "age": before}
    assert await move(container, ref, "table") == len(before)
    assert await held(pool, ref) == {"table": before, "age": {}}


@pytest.mark.parametrize("store", ["table", "age"])
async def test_the_store_that_the_graph_is_in_is_not_given_up(
    container: Container, pool: EngineDatabase, tenancy: Tenancy, store: GraphStoreName
) -> None:
    ref = await new_ref(tenancy, store)
    await fill(TableRows(pool, ref) if store == "table" else AgeRows(pool, ref), ref, entities=30, relations=30, seed=1)
    before = await held(pool, ref)
    workspace = await container.workspaces.open(ref.tenant_id, ref.workspace_id)
    with pytest.raises(WorkspaceBusy):
        await container.graph_move()._give_up(workspace, "age" if store == "table" else "table")
    assert await held(pool, ref) == before


async def never(_: object) -> None:
    pytest.fail("the write began")


def _move_in_a_process(
    settings: Settings, ref: WorkspaceRef, to: str, writes: int
) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {
        "TRELLIS_DATABASE_URL": settings.database_url.get_secret_value(),
        "TRELLIS_ENGINE_DATABASE_URL": settings.engine_database_url.get_secret_value(),
        "TRELLIS_REDIS_URL": settings.redis_url.get_secret_value(),
        "TRELLIS_BLOB_URL": settings.blob_url,
        "TRELLIS_SCRATCH_DIR": str(settings.scratch_dir),
        "TRELLIS_LEASE_SECONDS": "3",
    }
    task = {"tenant": str(ref.tenant_id), "workspace": str(ref.workspace_id), "to": to, "writes": writes}
    command = [sys.executable, "-m", killed_move.__name__, json.dumps(task)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
