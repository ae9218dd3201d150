"""The check finds every kind of drift that is made on purpose, and mending gives back what the documents say."""

from collections.abc import Mapping

import pytest

from app.retrieval.entity_contract import ChangeRecord
from app.retrieval.lightrag.edits import Edit
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.entities.check_store import CHUNK_ID
from app.retrieval.lightrag.graphs import graph_rows as graph_rows_of
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.names import entity_key
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.rows_store import Key, Kind
from tests.retrieval.lightrag.conftest import OURS_AND_AGE
from tests.retrieval.lightrag.doubles import SUFFIX, Corpus, VersionChunks, ignore
from tests.retrieval.lightrag.graph_rows import differences, graph_rows

TEXTS = ("Ann Reed met Bob Stone in Porto.", "Bob Stone owns Orbit Works. Ann Reed sings.")


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str) -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    return version


W = "workspace = $1"
W_ID = "'w_' || replace(workspace_id::text, '-', '') = $1"
HARM = {
    "entity_without_vector": f"DELETE FROM lightrag_vdb_entity_{SUFFIX} WHERE {W} AND entity_name = 'Ann Reed'",
    "entity_without_chunks": f"DELETE FROM lightrag_entity_chunks WHERE {W} AND id = 'Ann Reed'",
    "entity_with_lost_chunks": (
        f"UPDATE lightrag_entity_chunks SET chunk_ids = chunk_ids || '[\"00000000-0000-0000-0000-000000000000-chunk-000\"]'"
        f" WHERE {W} AND id = 'Ann Reed'"
    ),
    "entity_with_untracked_mentions": (
        f"UPDATE lightrag_entity_chunks SET chunk_ids = chunk_ids - 0, count = 1 WHERE {W} AND id = 'Bob Stone'"
    ),
    "entity_with_other_text": f"UPDATE lightrag_vdb_entity_{SUFFIX} SET content = 'old' WHERE {W} AND entity_name = 'Porto'",
    "relation_without_vector": f"DELETE FROM lightrag_vdb_relation_{SUFFIX} WHERE {W} AND source_id = 'Ann Reed'",
    "relation_without_chunks": f"DELETE FROM lightrag_relation_chunks WHERE {W} AND id LIKE 'Ann Reed%'",
    "vector_without_entity": f"UPDATE lightrag_vdb_entity_{SUFFIX} SET entity_name = 'Ghost', id = 'ent-x' WHERE {W} AND entity_name = 'Porto'",
    "relation_with_lost_chunks": (
        f"UPDATE lightrag_relation_chunks SET chunk_ids = chunk_ids || '[\"00000000-0000-0000-0000-000000000000-chunk-000\"]'"
        f" WHERE {W} AND id LIKE 'Ann Reed%'"
    ),
    "chunks_without_relation": f"UPDATE lightrag_relation_chunks SET id = 'Ann Reed<SEP>Ghost' WHERE {W} AND id = 'Ann Reed<SEP>Bob Stone'",
    "edit_without_entity": (
        "INSERT INTO entity_edits (tenant_id, workspace_id, key, name, fields, is_created)"
        f" SELECT tenant_id, workspace_id, '\\x{Edit('Ghost').key.hex()}', 'Ghost', '{{}}', false FROM entity_edits WHERE {W_ID}"
    ),
    "spelling_without_entity": (
        "INSERT INTO entity_aliases (tenant_id, workspace_id, key, alias, target, target_key, source)"
        f" SELECT tenant_id, workspace_id, '\\x{entity_key('ghost').hex()}', 'ghost', 'Ghost', '\\x{entity_key('Ghost').hex()}', 'spelling' FROM entity_edits WHERE {W_ID}"
    ),
    "chunks_without_entity": f"UPDATE lightrag_entity_chunks SET id = 'Ghost' WHERE {W} AND id = 'Porto'",
}
# What is taken from the graph itself, whichever store it is in.
GRAPH_HARM: Mapping[str, tuple[Kind, Key]] = {
    "vector_without_relation": ("edges", ("Bob Stone", "Orbit Works")),
    "mention_without_entity": ("nodes", ("Orbit Works",)),
}


@OURS_AND_AGE
@pytest.mark.parametrize("kind", [*HARM, *GRAPH_HARM])
async def test_harm_is_found_and_mended(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus, kind: str
) -> None:
    await ingest(index, corpus, *TEXTS)
    await entities.edit_entity(corpus.workspace, "Bob Stone", {"type": "Person"}, corpus.lease, record=ChangeRecord())
    before = await graph_rows(pool, corpus)
    assert set((await entities.check(corpus.workspace)).values()) == {0}
    with inside(corpus.workspace.ref):
        if kind in HARM:
            await pool.fetch(HARM[kind], corpus.workspace.ref.engine_name)
        else:
            await graph_rows_of(pool, corpus.workspace.ref).delete(GRAPH_HARM[kind][0], [GRAPH_HARM[kind][1]])
    assert (await entities.check(corpus.workspace))[kind] > 0
    left = await entities.mend(corpus.workspace, corpus.lease)
    assert set(left.values()) == {0}, left
    assert differences(before, await graph_rows(pool, corpus)) == {}


@pytest.mark.parametrize("ordinal", [7, 42, 999, 1000, 12345])
async def test_ids_of_chunks_are_those_that_the_graph_keeps(pool: EngineDatabase, ordinal: int) -> None:
    rows = await pool.fetch(
        f"SELECT {CHUNK_ID} AS id FROM (VALUES ('v', $1::int)) m (version_id, chunk_ordinal)", ordinal
    )
    assert rows[0]["id"] == f"v-chunk-{ordinal:03d}"


async def test_nothing_is_written_where_all_agrees(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, *TEXTS)
    before = await graph_rows(pool, corpus)
    calls = len(corpus.embedding.calls)
    assert set((await entities.mend(corpus.workspace, corpus.lease)).values()) == {0}
    assert await graph_rows(pool, corpus) == before
    assert len(corpus.embedding.calls) == calls
