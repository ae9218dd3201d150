"""A writer that slept past its lease writes nothing more, also where each of its statements is a write of its own."""

import asyncio
from contextvars import copy_context
from typing import Any

import pytest
from sqlalchemy import text

from app.db.session import Database
from app.domain.ingestion.leases import WorkspaceLeases
from app.errors import AppError
from app.retrieval.contract import Lease, LeaseLost
from app.retrieval.lightrag import pool as pool_module
from app.retrieval.lightrag.graphs import graph_store
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase, inside, only_while_held
from tests.retrieval.lightrag.doubles import Corpus, ignore

pytestmark = pytest.mark.parametrize(
    "stores_name", ["stock", pytest.param("age", marks=pytest.mark.age)], indirect=True
)

OWNED_BY = "UPDATE workspace_leases SET owner = :owner WHERE workspace_id = :id"


async def pass_on(database: Database, lease: Lease, owner: str = "its successor") -> None:
    async with database.tenant(lease.ref.tenant_id) as session:
        await session.execute(text(OWNED_BY), {"owner": owner, "id": lease.ref.workspace_id})


@pytest.mark.parametrize("statements", [2, 12, 25])
async def test_nothing_is_written_after_the_lease_passed_on(
    index: GraphWriter,
    pool: EngineDatabase,
    database: Database,
    corpus: Corpus,
    monkeypatch: pytest.MonkeyPatch,
    statements: int,
) -> None:
    version = await corpus.add("Ada Marsh founded Orbit Works in Lisbon.", "Orbit Works competes with Tall Pine.")
    await index.extract(corpus.workspace, version, ignore)
    store = graph_store(pool, corpus.workspace.ref, corpus.workspace.vector_suffix)
    run, without_lease = pool._run_with_retry, copy_context()
    left: list[dict[str, int]] = []
    count = 0

    async def look() -> None:
        with inside(corpus.workspace.ref):
            left.append(await store.traces(str(version.version_id)))

    async def oversleep(operation: Any, **options: Any) -> Any:
        nonlocal count
        if pool_module._held.get() is not None:
            count += 1
            if count == statements:
                await pass_on(database, corpus.lease)
                await asyncio.create_task(look(), context=without_lease)
        return await run(operation, **options)

    monkeypatch.setattr(pool, "_run_with_retry", oversleep)
    with pytest.raises(AppError):
        await index.insert(corpus.workspace, version, corpus.lease)
    await look()
    assert left[0] == left[1]
    assert count >= statements


async def test_a_statement_that_has_begun_keeps_the_lease_from_being_taken(
    pool: EngineDatabase, database: Database, corpus: Corpus
) -> None:
    ref = corpus.workspace.ref
    leases = WorkspaceLeases(database, 30)
    held = await leases.take(ref) or corpus.lease
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def write(connection: Any) -> None:
        begun.set()
        await may_end.wait()
        await connection.execute("SELECT 1")

    async def slow_statement() -> None:
        with inside(ref), only_while_held(held):
            await pool._run_with_retry(write)

    statement = asyncio.create_task(slow_statement())
    await begun.wait()
    async with database.tenant(ref.tenant_id) as session:
        await session.execute(
            text("UPDATE workspace_leases SET expires_at = now() - interval '1 s' WHERE workspace_id = :id"),
            {"id": ref.workspace_id},
        )
    assert await leases.take(ref) is None
    may_end.set()
    await statement
    assert await leases.take(ref) is not None
    with inside(ref), only_while_held(held), pytest.raises(LeaseLost):
        await pool.fetch("SELECT 1")
