"""What was read in the answers during extraction goes into the insert as if it were read there; writes keep to limits."""

from collections.abc import Sequence
from typing import Any

import pytest

from app.providers.contract import Purpose
from app.retrieval.contract import Extracted
from app.retrieval.entity_contract import MergeRequest
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.pool import EngineDatabase, engine_workspace
from app.retrieval.lightrag.storage.context import UnitTooLarge
from app.retrieval.lightrag.storage.weight import UnitLimits
from app.retrieval.lightrag.stores import Stores, Writes
from tests.retrieval.lightrag.doubles import Corpus, ignore

CHUNKS = ("Ada Marsh founded Orbit Works in Lisbon.", "Orbit Works competes with Tall Pine over harbour cranes.")
ROWS = (
    "SELECT id, properties - 'created_at' AS said FROM lightrag_graph_nodes ORDER BY id",
    "SELECT src_id, tgt_id, properties - 'created_at' AS said FROM lightrag_graph_edges ORDER BY 1, 2",
    "SELECT id, content, llm_cache_list FROM lightrag_doc_chunks ORDER BY id",
    "SELECT id, entity_names FROM lightrag_full_entities ORDER BY id",
    "SELECT id, chunk_ids FROM lightrag_entity_chunks ORDER BY id",
    "SELECT version_id, chunk_ordinal, name, target, type, description, keywords FROM mentions ORDER BY 1, 2, 3, 4, 6",
)


async def rows(pool: EngineDatabase, corpus: Corpus) -> list[Sequence[Any]]:
    ref = corpus.workspace.ref
    with engine_workspace(ref.engine_name, ref.tenant_id):
        return [[tuple(row) for row in await pool.fetch(statement)] for statement in ROWS]


async def test_an_insert_with_what_was_read_writes_the_rows_of_one_that_reads(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus
) -> None:
    version = await corpus.add(*CHUNKS)
    extracted: Extracted = {}
    await index.extract(corpus.workspace, version, ignore, into=extracted)
    assert sorted(extracted) == [0, 1]
    await index.insert(corpus.workspace, version, corpus.lease, extracted=extracted)
    first = await rows(pool, corpus)
    assert all(first)
    await index.remove(corpus.workspace, version.version_id, corpus.lease, keep_answers=True)
    await index.insert(corpus.workspace, version, corpus.lease)
    assert await rows(pool, corpus) == first
    assert corpus.chat.count(Purpose.EXTRACT) == 2


async def test_chunks_of_which_nothing_was_read_are_read_from_the_cache(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus
) -> None:
    version = await corpus.add(*CHUNKS)
    extracted: Extracted = {}
    await index.extract(corpus.workspace, version, ignore, into=extracted)
    del extracted[1]
    await index.insert(corpus.workspace, version, corpus.lease, extracted=extracted)
    assert {name for name, _ in (await rows(pool, corpus))[0]} == {"Ada Marsh", "Orbit Works", "Lisbon", "Tall Pine"}


async def test_a_write_that_touches_more_than_it_may_is_refused_whole(
    pool: EngineDatabase, instances: InstancePool, stores: Stores, corpus: Corpus
) -> None:
    index = GraphWriter(pool, instances, Writes(stores, UnitLimits(max_objects=5)))
    version = await corpus.add(*CHUNKS)
    await index.extract(corpus.workspace, version, ignore)
    with pytest.raises(UnitTooLarge):
        await index.insert(corpus.workspace, version, corpus.lease)
    assert not any(await rows(pool, corpus))


async def test_an_alias_that_came_after_the_reading_applies_all_the_same(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    first = await corpus.add("Ann Reed met Annie Reed in Porto.")
    await index.extract(corpus.workspace, first, ignore)
    await index.insert(corpus.workspace, first, corpus.lease)
    await corpus.trust(first)
    later = await corpus.add("Annie Reed moved to Braga.")
    extracted: Extracted = {}
    await index.extract(corpus.workspace, later, ignore, into=extracted)
    await entities.merge(corpus.workspace, MergeRequest(("Annie Reed",), "Ann Reed"), corpus.lease)
    await index.insert(corpus.workspace, later, corpus.lease, extracted=extracted)
    assert {name for name, _ in (await rows(pool, corpus))[0]} == {"Ann Reed", "Porto", "Braga"}


async def test_a_replacement_with_the_same_text_embeds_nothing_again(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus
) -> None:
    first = await corpus.add(*CHUNKS)
    await index.extract(corpus.workspace, first, ignore)
    await index.insert(corpus.workspace, first, corpus.lease)
    again = await corpus.add(*CHUNKS, "Tall Pine builds ships.", document_id=first.document_id)
    await index.extract(corpus.workspace, again, ignore)
    corpus.embedding.calls.clear()
    await index.insert(corpus.workspace, again, corpus.lease, replaces=[first.version_id])
    embedded = {text for _, texts in corpus.embedding.calls for text in texts}
    assert embedded
    assert not embedded & set(CHUNKS)
    assert not any(text.startswith("Ada Marsh\n") for text in embedded)
