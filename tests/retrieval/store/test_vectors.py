"""Vectors are found again by content, and a workspace gets its own nearest passages whatever else the table holds."""

from collections.abc import Sequence

import numpy as np
import pytest
from sqlalchemy import text

from app.db.session import Database
from app.db.vector_tables import MAX_INDEXED_DIMENSION, create_vector_tables, drop_vector_tables
from app.providers.contract import Vectors
from app.retrieval.store.hits import Hit
from app.retrieval.store.passages import insert_passages
from app.retrieval.store.vectors import EXACT_ROWS, PassageVectors
from tests.retrieval.corpora import Corpus, drafts

DIMENSION = 512


def random_vectors(count: int, seed: int) -> Vectors:
    found = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


async def store(corpus: Corpus, matrix: Vectors, *, state: str = "ready") -> list[int]:
    """One version with a passage per vector; the passages' ids."""
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        version = await corpus.add_version(session, "T", state=state)
        rows = await insert_passages(session, version, "T", drafts([f"p{n}" for n in range(len(matrix))]))
        by_passage = {row.id: (b"hash %d" % row.ordinal, matrix[row.ordinal]) for row in rows}
        await corpus.vectors.write(session, corpus.ref, version.version_id, by_passage)
    return [row.id for row in rows]


async def nearest(
    corpus: Corpus, query: Vectors, limit: int, *, rows: int = 0, include_partial: bool = False
) -> list[Hit]:
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        found = await corpus.vectors.nearest(
            session, corpus.ref, query, limit, rows=rows, include_partial=include_partial
        )
    return list(found.hits)


def by_hand(ids: Sequence[int], matrix: Vectors, query: Vectors, limit: int) -> list[int]:
    return [ids[row] for row in np.argsort(-(matrix @ query), kind="stable")[:limit]]


async def test_nearest_is_what_comparing_by_hand_gives(corpus: Corpus) -> None:
    matrix, query = random_vectors(120, 1), random_vectors(1, 2)[0]
    ids = await store(corpus, matrix)
    hits = await nearest(corpus, query, 30)
    assert [hit.passage_id for hit in hits] == by_hand(ids, matrix, query, 30)
    assert hits[0].score == pytest.approx(float((matrix @ query).max()), abs=1e-5)


async def test_a_small_workspace_gets_full_results_beside_a_big_one(corpus: Corpus, other_corpus: Corpus) -> None:
    # All of the big workspace lies nearer to the query than anything of the small one.
    query = random_vectors(1, 3)[0]
    near = random_vectors(1500, 4) * 0.3 + query
    await store(other_corpus, np.asarray(near / np.linalg.norm(near, axis=1, keepdims=True), dtype=np.float32))
    small = random_vectors(60, 5)
    ids = await store(corpus, small)
    assert [hit.passage_id for hit in await nearest(corpus, query, 60)] == by_hand(ids, small, query, 60)
    # The same through the shared index, as if the workspace were too large to be compared row by row.
    hits = await nearest(corpus, query, 60, rows=EXACT_ROWS + 1)
    assert [hit.passage_id for hit in hits] == by_hand(ids, small, query, 60)


async def test_untrusted_passages_do_not_crowd_out_trusted_ones(corpus: Corpus) -> None:
    query = random_vectors(1, 6)[0]
    near = random_vectors(200, 7) * 0.3 + query
    await store(corpus, np.asarray(near, dtype=np.float32), state="failed")
    matrix = random_vectors(20, 8)
    ids = await store(corpus, matrix)
    assert [hit.passage_id for hit in await nearest(corpus, query, 10)] == by_hand(ids, matrix, query, 10)


async def test_partial_versions_are_searched_on_demand(corpus: Corpus) -> None:
    matrix = random_vectors(5, 9)
    ids = await store(corpus, matrix, state="partial")
    assert await nearest(corpus, matrix[0], 5) == []
    assert (await nearest(corpus, matrix[0], 5, include_partial=True))[0].passage_id == ids[0]


async def test_a_query_of_zeros_is_near_to_nothing(corpus: Corpus) -> None:
    await store(corpus, random_vectors(5, 10))
    assert await nearest(corpus, np.zeros(DIMENSION, dtype=np.float32), 5) == []


async def test_known_contents_are_found_with_their_vectors_in_this_workspace_only(
    corpus: Corpus, other_corpus: Corpus
) -> None:
    matrix = random_vectors(3, 11)
    await store(corpus, matrix)
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        known = await corpus.vectors.find(session, corpus.ref, [b"hash 1", b"hash 1", b"hash 9"])
    async with other_corpus.database.tenant(other_corpus.ref.tenant_id) as session:
        foreign = await other_corpus.vectors.find(session, other_corpus.ref, [b"hash 1"])
    assert set(known) == {b"hash 1"}
    assert np.array_equal(known[b"hash 1"], matrix[1])
    assert foreign == {}


async def test_given_passages_are_ranked_by_their_similarity(corpus: Corpus) -> None:
    matrix = random_vectors(30, 12)
    ids = await store(corpus, matrix)
    asked = ids[5:15]
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        found = await corpus.vectors.similarities(session, corpus.ref, matrix[7], asked)
    assert [hit.passage_id for hit in found] == by_hand(asked, matrix[5:15], matrix[7], 10)


async def test_the_longest_vector_that_is_kept_in_its_row_fits(owner_database: Database, corpus: Corpus) -> None:
    longest = MAX_INDEXED_DIMENSION
    suffix = f"longest_{corpus.ref.number}_{longest}d"
    async with owner_database.system() as session:
        await create_vector_tables(session, suffix, longest)
    matrix = np.eye(3, longest, dtype=np.float32)
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        version = await corpus.add_version(session, "T")
        rows = await insert_passages(session, version, "T", drafts(["a", "b", "c"]))
        long_vectors = PassageVectors(suffix)
        by_passage = {row.id: (bytes(16), matrix[row.ordinal]) for row in rows}
        await long_vectors.write(session, corpus.ref, version.version_id, by_passage)
        found = await long_vectors.nearest(session, corpus.ref, matrix[1], 1, rows=3)
    assert [hit.passage_id for hit in found.hits] == [rows[1].id]
    async with owner_database.system() as session:
        await drop_vector_tables(session, suffix)


async def test_searching_the_index_is_planned_for_each_workspace_and_nothing_else_is(corpus: Corpus) -> None:
    """After five runs Postgres may turn to a plan for any workspace, which does not use the index."""
    matrix = random_vectors(20, 13)
    await store(corpus, matrix)
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        for _ in range(8):
            await corpus.vectors.nearest(session, corpus.ref, matrix[0], 5, rows=EXACT_ROWS + 1)
        assert await session.scalar(text("SHOW plan_cache_mode")) == "auto"
        plans = await session.execute(
            text(
                "SELECT sum(generic_plans), sum(custom_plans) FROM pg_prepared_statements"
                " WHERE statement LIKE '%ORDER BY embedding <=>%' AND statement NOT LIKE '%pg_prepared_statements%'"
            )
        )
        generic, custom = plans.one()
    assert (generic, custom >= 8) == (0, True)
