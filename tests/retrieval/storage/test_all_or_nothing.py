"""Whatever breaks an operation, it happened whole or not at all, and a retry asks no model again."""

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from app.db.provision import DatabaseUrls
from app.retrieval.contract import GraphWriteFailed
from app.retrieval.lightrag.storage.context import UnitConflict
from app.retrieval.lightrag.storage.unit import UnitOfWork, run_in_unit
from tests.retrieval.storage.conftest import OpenEngine
from tests.retrieval.storage.faults import Broken, before_statement
from tests.retrieval.storage.harness import TABLES, Calls, Engine, differences, make_documents, table_rows

# Everything but the extraction cache, which is meant to survive.
UNIT_TABLES = tuple(table for table in TABLES if table != "lightrag_llm_cache")
CANCEL_MOMENTS = 24

Operation = Callable[[Engine], Awaitable[None]]


async def _merge(engine: Engine) -> None:
    names = ("Amber Bridge", "Amber Castle", "Amber Forest")
    await engine.change("amerge_entities", list(names[:2]), names[2], read_ahead=names)


async def _delete_first(engine: Engine) -> None:
    await engine.change("adelete_by_doc_id", next(iter(engine.chunks)))


async def _insert_last(engine: Engine) -> None:
    await engine.insert(list(engine.chunks)[-1])


@pytest.mark.parametrize("operation", [_insert_last, _merge, _delete_first])
async def test_error_at_any_statement_leaves_nothing(
    operation: Operation, open_one: OpenEngine, urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await _filled_engine(open_one, documents=4, inserted=3)
    before = await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES)
    epoch = await _epoch(urls, engine)
    asked = 0
    for number in range(100):
        with monkeypatch.context() as patch:
            broken = _break_at(number)
            seen = before_statement(patch, broken)
            try:
                await operation(engine)
            except Broken:
                assert await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES) == before
                assert await _epoch(urls, engine) == epoch
                asked = asked or engine.calls.count["extract"]
            else:
                break
    assert len(seen) > 5
    assert await _epoch(urls, engine) == epoch + 1
    assert engine.calls.count["extract"] == asked
    assert await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES) != before


def _break_at(number: int) -> Callable[[int], Awaitable[None]]:
    async def fault(statement: int) -> None:
        if statement == number:
            raise Broken

    return fault


@pytest.mark.parametrize("purpose", ["extract", "embed"])
async def test_model_error_leaves_nothing_but_paid_answers(
    purpose: str, open_one: OpenEngine, urls: DatabaseUrls
) -> None:
    calls = Calls(fail_at={purpose: 3 if purpose == "extract" else 1})
    engine = await open_one(is_unit=True, calls=calls)
    engine.chunks.update(make_documents(1))
    document = next(iter(engine.chunks))
    with pytest.raises((GraphWriteFailed, RuntimeError)):
        await engine.insert(document)
    rows = await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES)
    assert not any(rows.values())
    answered = calls.count["extract"]
    await engine.insert(document)
    # Only the call that failed is made again.
    assert calls.count["extract"] - answered == (1 if purpose == "extract" else 0)


async def test_somebody_elses_write_fences_the_unit(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await _filled_engine(open_one, documents=2, inserted=1)
    before = await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES)
    document = list(engine.chunks)[-1]
    async with engine.unit() as unit:
        await engine.insert_into(unit, document)
        await _move_epoch(urls, engine)
        with pytest.raises(UnitConflict):
            await unit.commit()
    assert await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES) == before


async def test_conflict_is_run_again_from_the_cache(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await _filled_engine(open_one, documents=2, inserted=1)
    document = list(engine.chunks)[-1]
    asked = engine.calls.count["extract"]
    runs = 0

    async def insert(unit: UnitOfWork) -> None:
        nonlocal runs
        runs += 1
        await engine.insert_into(unit, document)
        if runs < 3:
            await _move_epoch(urls, engine)
        await unit.commit()

    await run_in_unit(engine.rag, engine.lease, insert)
    assert runs == 3
    assert engine.calls.count["extract"] - asked == len(engine.chunks[document])


async def test_cancelled_inserts_are_in_or_not(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    documents = make_documents(CANCEL_MOMENTS + 1)
    first, *others = documents
    stock, engine = await open_one(is_unit=False), await open_one(is_unit=True)
    stock.chunks.update(documents)
    engine.chunks.update(documents)
    loop = asyncio.get_running_loop()
    start = loop.time()
    await engine.insert(first)
    usual = loop.time() - start
    inserted = [first]
    for number, document in enumerate(others):
        before = await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES)
        try:
            await asyncio.wait_for(engine.insert(document), usual * 1.2 * (number + 1) / CANCEL_MOMENTS)
        except TimeoutError:
            assert await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES) == before
        else:
            inserted.append(document)
    assert len(inserted) < len(documents)
    for document in others:
        if document not in inserted:
            await engine.insert(document)
            inserted.append(document)
    for document in inserted:
        await stock.insert(document)
    expected = await table_rows(urls.owner, stock.ref.engine_name, UNIT_TABLES)
    assert differences(expected, await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES)) == {}


async def test_cancel_during_the_commit_is_swallowed(
    open_one: OpenEngine, urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await _filled_engine(open_one, documents=2, inserted=1)
    inserting = asyncio.create_task(engine.insert(list(engine.chunks)[-1]))

    async def cancel(statement: int) -> None:
        if statement == 3:
            inserting.cancel()
            await asyncio.sleep(0)

    before_statement(monkeypatch, cancel)
    await inserting
    assert inserting.cancelling() == 0
    rows = await table_rows(urls.owner, engine.ref.engine_name, ("lightrag_doc_status",))
    assert len(rows["lightrag_doc_status"]) == 2


async def _filled_engine(open_one: OpenEngine, *, documents: int, inserted: int) -> Engine:
    engine = await open_one(is_unit=True)
    engine.chunks.update(make_documents(documents))
    for document in list(engine.chunks)[:inserted]:
        await engine.insert(document)
    return engine


async def _epoch(urls: DatabaseUrls, engine: Engine) -> int:
    return int(await _on_lease(urls, engine, "SELECT epoch FROM workspace_leases WHERE workspace_id = $1"))


async def _move_epoch(urls: DatabaseUrls, engine: Engine) -> None:
    await _on_lease(
        urls, engine, "UPDATE workspace_leases SET epoch = epoch + 1 WHERE workspace_id = $1 RETURNING epoch"
    )


async def _on_lease(urls: DatabaseUrls, engine: Engine, statement: str) -> int:
    connection = await asyncpg.connect(urls.owner)
    try:
        return int(await connection.fetchval(statement, engine.ref.workspace_id))
    finally:
        await connection.close()
