"""Work that is cut off at any moment: calls end, nothing half-written is seen, and a second try works and pays little."""

import asyncio

import asyncpg
import pytest

from app.errors import Unavailable
from app.providers.contract import Purpose
from app.retrieval.contract import GRAPH_MODES, SearchRequest
from app.retrieval.entity_contract import MergeRequest
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase, EngineUnavailable, inside
from app.retrieval.lightrag.search import GraphSearch
from tests.retrieval.lightrag.doubles import Corpus, ignore
from tests.retrieval.lightrag.test_entities import snapshot
from tests.retrieval.lightrag.test_search import everything

CHUNKS = [
    f"Person {letter} met Hub City and Town {letter}."
    for letter in ["Ax", "Bx", "Cx", "Dx", "Ex", "Fx", "Gx", "Hx", "Ix", "Jx", "Kx", "Lx"]
]


async def test_cancelling_an_extraction_cancels_the_calls_that_are_under_way(
    index: GraphWriter, corpus: Corpus
) -> None:
    version = await corpus.add(*CHUNKS)
    corpus.chat.seconds = 60
    work = asyncio.create_task(index.extract(corpus.workspace, version, ignore))
    async with asyncio.timeout(10):
        await corpus.chat.busy.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await asyncio.sleep(0.05)
    assert corpus.chat.cancelled == corpus.chat.profile.max_concurrency
    assert len(corpus.chat.asked) == corpus.chat.profile.max_concurrency


async def test_what_was_answered_before_the_cancellation_is_not_asked_again(index: GraphWriter, corpus: Corpus) -> None:
    version = await corpus.add(*CHUNKS)
    corpus.chat.seconds = 0.02
    reported = asyncio.Event()

    async def watch(outcome: object) -> None:
        reported.set()

    work = asyncio.create_task(index.extract(corpus.workspace, version, watch))
    await reported.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    corpus.chat.seconds = 0
    await index.extract(corpus.workspace, version, ignore)
    assert corpus.chat.count(Purpose.EXTRACT) <= len(CHUNKS) + corpus.chat.profile.max_concurrency


@pytest.mark.parametrize("milliseconds", [0, 10, 30, 60, 120, 240])
async def test_an_insert_that_is_cut_off_is_not_seen_and_can_be_done_again(
    index: GraphWriter, search: GraphSearch, pool: EngineDatabase, corpus: Corpus, milliseconds: int
) -> None:
    version = await corpus.add(*CHUNKS)
    await index.extract(corpus.workspace, version, ignore)
    corpus.embedding.seconds = 0.03
    work = asyncio.create_task(index.insert(corpus.workspace, version, corpus.lease))
    await asyncio.sleep(milliseconds / 1000)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    for mode in GRAPH_MODES:
        result = await search.search(corpus.workspace, SearchRequest("Hub City", mode))
        assert everything(result).strip() == ""

    corpus.embedding.seconds = 0
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    assert corpus.chat.count(Purpose.EXTRACT) == len(CHUNKS)
    with inside(corpus.workspace.ref):
        (nodes,) = await pool.fetch("SELECT count(*) AS n FROM lightrag_graph_nodes")
        (support,) = await pool.fetch("SELECT count FROM lightrag_entity_chunks WHERE id = 'Hub City'")
    assert nodes["n"] == 1 + 2 * len(CHUNKS)
    assert support["count"] == len(CHUNKS)


async def test_a_merge_whose_embedding_fails_changes_nothing(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    version = await corpus.add(*CHUNKS)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    before = await snapshot(pool, corpus)
    corpus.embedding.failing = 1
    request = MergeRequest(("Town Ax", "Town Bx"), "Hub City")
    with pytest.raises(Unavailable):
        await entities.merge(corpus.workspace, request, corpus.lease)
    assert await snapshot(pool, corpus) == before
    merged = await entities.merge(corpus.workspace, request, corpus.lease)
    assert len(merged.relations) == 2 * len(CHUNKS) - 2


async def test_a_database_that_does_not_answer_is_told_as_such(pool: EngineDatabase, corpus: Corpus) -> None:
    async def wait_too_long() -> None:
        async with pool.transaction() as connection:
            await connection.execute("SET LOCAL statement_timeout = 20")
            await connection.execute("SELECT pg_sleep(5)")

    with pytest.raises(EngineUnavailable), inside(corpus.workspace.ref):
        await wait_too_long()
    with pytest.raises(asyncpg.UndefinedTableError), inside(corpus.workspace.ref):
        await pool.fetch("SELECT 1 FROM nowhere")
