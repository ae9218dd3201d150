"""The fence of a workspace holds although LightRAG's own conditions are gone, and costs a small workspace no results."""

import re
from collections.abc import AsyncIterator

import asyncpg
import numpy as np
import pytest
from lightrag.kg.postgres_impl import SQL_TEMPLATES
from pgvector import Vector

from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.db.vector_tables import create_vector_tables, drop_vector_tables
from app.retrieval.contract import SearchRequest
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase, engine_workspace
from app.retrieval.lightrag.search import GraphSearch
from tests.retrieval.lightrag.doubles import SUFFIX, Corpus
from tests.retrieval.lightrag.test_search import everything, ingest

DIMENSION = 64
PARTS = "fence_64d"
LEGS = {
    "entity": ("entities", "entity_name"),
    "relation": ("relationships", "source_id, target_id"),
    "chunks": ("chunks", "full_doc_id"),
}
CONDITION = re.compile(r"\b(?:\w+\.)?workspace\s*=\s*\$1")
TABLES = (
    "doc_full", "doc_chunks", "doc_status", "full_entities", "full_relations", "entity_chunks", "relation_chunks",
    "graph_nodes", "graph_edges", "llm_cache", f"vdb_chunks_{SUFFIX}", f"vdb_entity_{SUFFIX}", f"vdb_relation_{SUFFIX}",
)  # fmt: skip


async def test_without_its_where_clause_the_engine_still_sees_one_workspace(
    index: GraphWriter,
    search: GraphSearch,
    corpus: Corpus,
    other_corpus: Corpus,
    pool: EngineDatabase,
    urls: DatabaseUrls,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await ingest(index, corpus, "Zyxomma Alpha works with Quietus in Lisbon.")
    await ingest(index, other_corpus, "Zyxomma Beta works with Ruckus in Lisbon.")
    for name, template in SQL_TEMPLATES.items():
        monkeypatch.setitem(SQL_TEMPLATES, name, CONDITION.sub("$1::text IS NOT NULL", template))
    request = SearchRequest("Who works with Quietus, Ruckus, Zyxomma Alpha or Zyxomma Beta in Lisbon?", "mix")
    found = everything(await search.search(corpus.workspace, request))
    assert "Alpha" in found
    assert "Beta" not in found
    owner = await asyncpg.connect(urls.owner)
    try:
        for table in TABLES:
            statement = f"SELECT DISTINCT workspace FROM lightrag_{table}"
            # Whoever is not fenced sees both: there is something to be kept apart.
            everywhere = {row["workspace"] for row in await owner.fetch(statement)}
            assert {corpus.workspace.ref.engine_name, other_corpus.workspace.ref.engine_name} <= everywhere, table
            with engine_workspace(corpus.workspace.ref.engine_name):
                seen = {row["workspace"] for row in await pool.fetch(statement)}
            assert seen == {corpus.workspace.ref.engine_name}, table
            assert await pool.fetch(statement) == [], table
    finally:
        await owner.close()


@pytest.fixture
async def tables(owner_database: Database) -> AsyncIterator[None]:
    async with owner_database.system() as session:
        await create_vector_tables(session, PARTS, DIMENSION)
    yield
    async with owner_database.system() as session:
        await drop_vector_tables(session, PARTS)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("leg", LEGS)
async def test_thirty_rows_beside_fifty_thousand_are_all_found(
    pool: EngineDatabase, corpus: Corpus, other_corpus: Corpus, leg: str
) -> None:
    """Facts F13: an index over all would stop before it met one of the thirty."""
    template, names = LEGS[leg]
    table = f"lightrag_vdb_{leg}_{PARTS}"
    more = ", ''" if "," in names else ""
    big, small = other_corpus.workspace.ref.engine_name, corpus.workspace.ref.engine_name
    query = np.zeros(DIMENSION, dtype=np.float32)
    query[0] = 1.0
    # All of the large workspace lies nearer to the question than anything of the small one.
    fill = (
        f"INSERT INTO {table} (workspace, id, {names}, content_vector) SELECT $1, 'e' || n, 'e' || n{more},"
        " ('[1' || repeat(',' || (n % 97) / 1000.0, $2) || ']')::vector FROM generate_series(1, 50000) n"
    )
    with engine_workspace(big):
        await pool.fetch(fill, big, DIMENSION - 1)
    rows = [np.r_[0.1, np.eye(DIMENSION - 1)[number]].astype(np.float32) * (1 + number / 100) for number in range(30)]
    statement = f"INSERT INTO {table} (workspace, id, {names}, content_vector) SELECT $1, u.id, u.id{more}, u.v FROM unnest($2::text[], $3::vector[]) u(id, v)"
    with engine_workspace(small):
        await pool.fetch(statement, small, [f"e{number}" for number in range(30)], [Vector(row) for row in rows])
        search = SQL_TEMPLATES[template].format(table_name=table, vector_cast="vector")
        assert len(await pool.fetch(search, small, 2.0, 20, query)) == 20
