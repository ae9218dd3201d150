"""A connection that breaks at COMMIT: the unit finds out whether it went in, and never guesses."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.db.vector_tables import create_vector_tables
from app.retrieval.contract import GraphWriteFailed
from app.retrieval.lightrag.pool import EngineDatabase
from app.settings import Settings
from tests.retrieval.storage.conftest import OpenEngine, own_engine_database
from tests.retrieval.storage.faults import LossyProxy
from tests.retrieval.storage.harness import DIMENSION, SUFFIX, TABLES, make_documents, table_rows

UNIT_TABLES = tuple(table for table in TABLES if table != "lightrag_llm_cache")


@pytest.fixture(scope="module")
async def proxy(urls: DatabaseUrls) -> AsyncIterator[LossyProxy]:
    server = urlsplit(urls.engine)
    async with LossyProxy().serve(str(server.hostname), int(server.port or 0)) as serving:
        yield serving


@pytest.fixture(scope="module")
async def engine_pool(
    settings: Settings, owner_database: Database, urls: DatabaseUrls, proxy: LossyProxy
) -> AsyncIterator[EngineDatabase]:
    async with owner_database.system() as session:
        await create_vector_tables(session, SUFFIX, DIMENSION)
    port = urlsplit(urls.engine).port
    through_proxy = urls.engine.replace(f":{port}/", f":{proxy.port}/")
    async with own_engine_database(
        Settings(**settings.model_dump() | {"engine_database_url": through_proxy})
    ) as opened:
        yield opened


async def test_commit_whose_answer_was_lost_counts(open_one: OpenEngine, urls: DatabaseUrls, proxy: LossyProxy) -> None:
    engine = await open_one(is_unit=True)
    engine.chunks.update(make_documents(1))
    (document,) = engine.chunks
    async with engine.unit() as unit:
        await engine.insert_into(unit, document)
        proxy.lose = "answer"
        await unit.commit()
    assert unit.is_committed
    assert proxy.lose is None
    rows = await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES)
    assert all(rows.values())


async def test_commit_that_never_arrived_is_reported(
    open_one: OpenEngine, urls: DatabaseUrls, proxy: LossyProxy
) -> None:
    engine = await open_one(is_unit=True)
    engine.chunks.update(make_documents(1))
    (document,) = engine.chunks
    async with engine.unit() as unit:
        await engine.insert_into(unit, document)
        proxy.lose = "request"
        with pytest.raises(GraphWriteFailed):
            await unit.commit()
    assert not any((await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES)).values())
    await engine.insert(document)
    assert all((await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES)).values())


async def test_connection_that_is_cut_at_any_message_of_the_commit_leaves_nothing(
    open_one: OpenEngine, urls: DatabaseUrls, proxy: LossyProxy
) -> None:
    engine = await open_one(is_unit=True)
    engine.chunks.update(make_documents(2))
    first, second = engine.chunks
    await engine.insert(first)
    before = await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES)
    # The first message asks whether the connection is alive, and the pool takes another one if it is not.
    for messages in range(1, 200):
        async with engine.unit() as unit:
            await engine.insert_into(unit, second)
            await engine.rag.llm_response_cache.flush()
            proxy.messages_left = messages
            try:
                await unit.commit()
            except GraphWriteFailed:
                assert await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES) == before
            else:
                break
    proxy.messages_left = None
    assert messages > 10
    rows = await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES)
    assert len(rows["lightrag_doc_status"]) == 2
