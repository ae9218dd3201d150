"""Writing a workspace's graph: extraction ahead, insert, removal with proof."""

import pytest

from app.errors import Unavailable
from app.providers.contract import ModelNonsense, ModelUnavailable, Purpose
from app.retrieval.contract import ChunkOutcome, GraphWriteFailed
from app.retrieval.lightrag.graphs import graph_store
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase, engine_workspace, inside
from tests.retrieval.lightrag.conftest import ALL_STORES
from tests.retrieval.lightrag.doubles import SUFFIX, Corpus, VersionChunks, ignore, records
from tests.retrieval.lightrag.stored_graph import graph_nodes

pytestmark = ALL_STORES

ORBIT = "Ada Marsh founded Orbit Works in Lisbon."
RIVAL = "Orbit Works competes with Tall Pine over harbour cranes."


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str) -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    return version


async def nodes(pool: EngineDatabase, corpus: Corpus) -> dict[str, str]:
    found = await graph_nodes(pool, corpus.workspace.ref)
    return {name: properties["description"] for name, properties in found.items()}


async def traces(pool: EngineDatabase, corpus: Corpus, version: VersionChunks) -> dict[str, int]:
    with inside(corpus.workspace.ref):
        store = graph_store(pool, corpus.workspace.ref, corpus.workspace.vector_suffix)
        return await store.traces(str(version.version_id))


async def test_insert_merges_what_was_extracted_and_asks_the_model_no_more(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus
) -> None:
    seen: list[ChunkOutcome] = []

    async def watch(outcome: ChunkOutcome) -> None:
        seen.append(outcome)

    version = await corpus.add(ORBIT, RIVAL)
    await index.extract(corpus.workspace, version, watch)
    assert sorted(outcome.ordinal for outcome in seen) == [0, 1]
    assert corpus.chat.count(Purpose.EXTRACT) == 2
    await index.insert(corpus.workspace, version, corpus.lease)
    assert corpus.chat.count(Purpose.EXTRACT) == 2
    assert set(await nodes(pool, corpus)) == {"Ada Marsh", "Orbit Works", "Lisbon", "Tall Pine"}


async def test_extraction_of_what_is_cached_is_reported_without_a_call(index: GraphWriter, corpus: Corpus) -> None:
    version = await corpus.add(ORBIT, RIVAL)
    await index.extract(corpus.workspace, version, ignore)
    seen: list[int] = []

    async def watch(outcome: ChunkOutcome) -> None:
        seen.append(outcome.ordinal)

    await index.extract(corpus.workspace, version, watch)
    assert sorted(seen) == [0, 1]
    assert corpus.chat.count(Purpose.EXTRACT) == 2


async def test_nonsense_fails_its_chunk_only_and_is_asked_again(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus
) -> None:
    corpus.chat.answers["Tall Pine"] = "I like trains."
    version = await corpus.add(ORBIT, RIVAL)
    seen: dict[int, str | None] = {}

    async def watch(outcome: ChunkOutcome) -> None:
        seen[outcome.ordinal] = outcome.error_code

    await index.extract(corpus.workspace, version, watch)
    assert seen == {0: None, 1: ModelNonsense.code}
    await index.insert(corpus.workspace, version, corpus.lease)
    assert "Tall Pine" not in await nodes(pool, corpus)

    corpus.chat.answers.clear()
    await index.extract(corpus.workspace, version, ignore)
    assert corpus.chat.count(Purpose.EXTRACT) == 3
    await index.insert(corpus.workspace, version, corpus.lease)
    assert "Tall Pine" in await nodes(pool, corpus)


async def test_a_chunk_that_the_model_cannot_answer_now_may_be_asked_for_again(
    index: GraphWriter, corpus: Corpus
) -> None:
    corpus.chat.answers["Tall Pine"] = ModelUnavailable("the provider answered 503", status=503)
    version = await corpus.add(ORBIT, RIVAL)
    seen: list[ChunkOutcome] = []

    async def watch(outcome: ChunkOutcome) -> None:
        seen.append(outcome)

    await index.extract(corpus.workspace, version, watch)
    refused = ChunkOutcome(1, ModelUnavailable.code, "the provider answered 503", may_pass=True)
    assert sorted(seen, key=lambda outcome: outcome.ordinal) == [ChunkOutcome(0), refused]


async def test_a_model_that_answers_for_no_chunk_ends_the_extraction(index: GraphWriter, corpus: Corpus) -> None:
    corpus.chat.answers["Orbit"] = ModelUnavailable("the provider answered 503", status=503)
    version = await corpus.add(*(f"{ORBIT} Line {n}." for n in range(60)))
    with pytest.raises(ModelUnavailable, match="503"):
        await index.extract(corpus.workspace, version, ignore)
    assert corpus.chat.count(Purpose.EXTRACT) < 60


async def test_nothing_extracted_is_an_error_of_the_insert(index: GraphWriter, corpus: Corpus) -> None:
    version = await corpus.add(ORBIT)
    with pytest.raises(GraphWriteFailed) as caught:
        await index.insert(corpus.workspace, version, corpus.lease)
    assert caught.value.reason == "nothing_extracted"


async def test_removal_leaves_no_trace_and_keeps_what_others_said(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus
) -> None:
    first = await ingest(index, corpus, ORBIT)
    second = await ingest(index, corpus, RIVAL)
    assert await traces(pool, corpus, first)
    await index.remove(corpus.workspace, first.version_id, corpus.lease)
    assert await traces(pool, corpus, first) == {}
    left = await nodes(pool, corpus)
    assert set(left) == {"Orbit Works", "Tall Pine"}
    assert "Lisbon" not in left["Orbit Works"]
    await index.remove(corpus.workspace, second.version_id, corpus.lease)
    assert await nodes(pool, corpus) == {}


async def test_removing_what_is_not_there_is_fine(index: GraphWriter, corpus: Corpus) -> None:
    version = await corpus.add(ORBIT)
    await index.remove(corpus.workspace, version.version_id, corpus.lease)


async def test_an_insert_over_leftovers_of_itself_works(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus
) -> None:
    version = await ingest(index, corpus, ORBIT)
    before = await nodes(pool, corpus)
    await index.insert(corpus.workspace, version, corpus.lease)
    assert await nodes(pool, corpus) == before


async def test_equal_texts_are_two_versions_and_outlive_each_other(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus
) -> None:
    first = await ingest(index, corpus, ORBIT)
    second = await ingest(index, corpus, ORBIT)
    assert corpus.chat.count(Purpose.EXTRACT) == 1
    await index.remove(corpus.workspace, first.version_id, corpus.lease)
    assert await traces(pool, corpus, first) == {}
    assert "Ada Marsh" in await nodes(pool, corpus)
    third = await ingest(index, corpus, RIVAL)
    await index.remove(corpus.workspace, third.version_id, corpus.lease)
    assert await nodes(pool, corpus) == {
        "Ada Marsh": ORBIT,
        "Lisbon": ORBIT,
        "Orbit Works": ORBIT,
    }
    await index.remove(corpus.workspace, second.version_id, corpus.lease)
    assert await nodes(pool, corpus) == {}


async def test_an_embedding_that_fails_is_told_and_leaves_nothing_that_a_later_insert_would_write(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus
) -> None:
    version = await corpus.add(ORBIT)
    await index.extract(corpus.workspace, version, ignore)
    corpus.embedding.failing = 100
    with pytest.raises(Unavailable, match="embedding model is down"):
        await index.insert(corpus.workspace, version, corpus.lease)
    corpus.embedding.failing = 0
    await ingest(index, corpus, RIVAL)
    with engine_workspace(corpus.workspace.ref.engine_name):
        rows = await pool.fetch(f"SELECT full_doc_id FROM lightrag_vdb_chunks_{SUFFIX}")
    assert str(version.version_id) not in {row["full_doc_id"] for row in rows}
    await index.insert(corpus.workspace, version, corpus.lease)
    assert "Ada Marsh" in await nodes(pool, corpus)


async def test_clearing_empties_one_workspace_only(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus, other_corpus: Corpus
) -> None:
    version = await ingest(index, corpus, ORBIT)
    await ingest(index, other_corpus, RIVAL)
    await index.clear(corpus.workspace, corpus.lease)
    assert await traces(pool, corpus, version) == {}
    assert await nodes(pool, corpus) == {}
    assert await nodes(pool, other_corpus)


async def test_names_too_long_for_the_engine_are_kept_apart_by_a_digest(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus
) -> None:
    names = ["Long " * 60 + "a", "Long " * 60 + "b", "Short"]
    corpus.chat.answers["long"] = records("a long story.", names)
    await ingest(index, corpus, "a long story.")
    kept = await nodes(pool, corpus)
    assert len(kept) == 3
    assert max(map(len, kept)) <= 240
