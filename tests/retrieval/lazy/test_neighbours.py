"""A small tenant beside a big one gets full results, in every leg (facts F13)."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import text

from app.db.session import Database
from app.db.vector_tables import create_vector_tables, drop_vector_tables
from app.providers.contract import EmbeddingRole, ModelProfile, Vectors
from app.retrieval.contract import SearchRequest
from app.retrieval.lazy.engine import LazySearch
from app.retrieval.store.postings import search_terms
from app.text.concepts.extraction import concept_key
from tests.retrieval.corpora import Corpus

BIG, SMALL, WANTED = 50_000, 30, 20
DIMENSION = 8
QUESTION = "Where do the herons of Lake Vell nest?"

# Passages that fit the question better than any of the small tenant's, by words, concepts and vectors.
FILL = """
WITH made AS (
  INSERT INTO passages (tenant_id, workspace_id, document_id, version_id, ordinal, text, tokens, char_start, char_end,
                        heading_path, content_hash)
  SELECT :tenant_id, :workspace_id, :document_id, :version_id, n, 'herons of Lake Vell nest', 6, 0, 24, '{}', '\\x00'
    FROM generate_series(1, :rows) n
  RETURNING id
), vectors AS (
  INSERT INTO passage_vectors_f13_8d (tenant_id, workspace_id, passage_id, version_id, content_hash, embedding)
  SELECT :tenant_id, :workspace_id, id, :version_id, '\\x00', '[1,0,0,0,0,0,0,0]' FROM made
), terms AS (
  INSERT INTO term_postings (workspace, key, passage_id, frequency, length)
  SELECT :workspace, key, id, 3, 6 FROM made, unnest(CAST(:keys AS bigint[])) key
)
INSERT INTO concept_postings (workspace, key, passage_id, flags)
SELECT :workspace, key, id, 0 FROM made, unnest(CAST(:keys AS bigint[])) key
"""


class Flat:
    """An embedding model for which all texts are nearly the same."""

    dimension = DIMENSION

    def __init__(self, profile: ModelProfile) -> None:
        self.profile = profile

    async def embed(self, texts: Sequence[str], *, role: EmbeddingRole) -> Vectors:
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        vectors[:, 0] = 1
        vectors[:, 1] = [0.01 * (len(text) % 30) for text in texts]
        scaled: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return scaled

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.fixture
async def vector_suffix(owner_database: Database) -> AsyncIterator[str]:
    suffix = "f13_8d"
    async with owner_database.system() as session:
        await create_vector_tables(session, suffix, DIMENSION)
    yield suffix
    async with owner_database.system() as session:
        await drop_vector_tables(session, suffix)


async def fill(big: Corpus) -> None:
    async with big.database.tenant(big.ref.tenant_id) as session:
        version = await big.add_version(session, "Herons")
        keys = [concept_key(word) for word in ("herons", "lake", "vell", "nest", "lake vell")]
        scope = {"tenant_id": big.ref.tenant_id, "workspace": big.ref.number, "version_id": version.version_id}
        await session.execute(
            text(FILL),
            {
                **scope,
                "workspace_id": big.ref.workspace_id,
                "document_id": version.document_id,
                "keys": keys,
                "rows": BIG,
            },
        )
        await session.execute(
            text("INSERT INTO lazy_versions VALUES (:tenant_id, :version_id, :workspace, :passages, :terms)"),
            {**scope, "passages": BIG, "terms": 6 * BIG},
        )


async def test_thirty_passages_beside_fifty_thousand_are_all_found(
    corpus: Corpus, other_corpus: Corpus, vector_suffix: str
) -> None:
    small, big = (
        replace(
            found,
            workspace=replace(
                found.workspace, embedding=Flat(found.workspace.embedding.profile), vector_suffix=vector_suffix
            ),
        )
        for found in (corpus, other_corpus)
    )
    await fill(big)
    mine = set()
    for number in range(SMALL):
        stored = await small.add(
            f"Note {number}", f"{number} herons nest at Lake Vell, where Observer {number % 4} stays."
        )
        mine.update(stored.passage_ids)
    query = (await small.workspace.embedding.embed([QUESTION], role="query"))[0]
    async with small.database.tenant(small.ref.tenant_id) as session:
        near = (await small.vectors.nearest(session, small.ref, query, WANTED, rows=0)).hits
        lexical = await search_terms(session, small.ref, QUESTION, WANTED)
    assert len(near) == len(lexical.hits) == WANTED
    assert {hit.passage_id for hit in (*near, *lexical.hits)} <= mine
    assert lexical.corpus_passages == SMALL
    for mode in ("baseline", "lazy-fast", "lazy", "lazy-wide"):
        result = await LazySearch(small.database).search(small.workspace, SearchRequest(QUESTION, mode, top_k=WANTED))
        assert len(result.passages) == WANTED, mode
        assert {passage.passage_id for passage in result.passages} <= mine
    found = await LazySearch(big.database).search(big.workspace, SearchRequest(QUESTION, "baseline", top_k=WANTED))
    assert len(found.passages) == WANTED
