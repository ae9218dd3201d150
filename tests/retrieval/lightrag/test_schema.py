"""The engine's tables are exactly those that LightRAG would make for itself, but for fences, two indexes and partitions of ours,
and for its indexes that repeat a primary key.

The vector tables are partitioned by workspace and have no ANN index but in the partitions of large workspaces.
"""

import re
from collections.abc import AsyncIterator, Iterable

import asyncpg
import pytest
from lightrag.kg.pgtable_impl import _DDL as GRAPH_DDL
from lightrag.kg.postgres_impl import ClientManager, PGVectorStorage, PostgreSQLDB, _safe_index_name
from sqlalchemy import make_url

from app.db.provision import DatabaseUrls, drop_database, provision_database
from app.db.session import Database
from app.db.vector_tables import (
    DimensionMismatch,
    create_vector_tables,
    drop_vector_tables,
    index_name,
    vector_suffix,
    vector_table_names,
)
from app.errors import Invalid
from tests.cluster import Cluster

REPEATED = re.compile(r"CREATE INDEX .* USING btree \((workspace, )?id\)")
OURS = {"ix_lightrag_doc_chunks_full_doc_id", "ix_lightrag_llm_cache_chunk_id"}
SUFFIX = "schema_8d"

COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull, a.attcollation::regcollation::text,
       pg_get_expr(d.adbin, d.adrelid) AS preset
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relkind IN ('r', 'p') AND c.relname LIKE 'lightrag%' AND {chosen}
 ORDER BY c.relname, a.attname
"""
CONSTRAINTS = """
SELECT c.relname, n.conname, pg_get_constraintdef(n.oid)
  FROM pg_constraint n JOIN pg_class c ON c.oid = n.conrelid
 WHERE c.relname LIKE 'lightrag%' AND n.contype <> 'n' AND {chosen} ORDER BY 1, 2
"""
INDEXES = """
SELECT c.relname, i.relname, replace(pg_get_indexdef(i.oid), ' ON ONLY ', ' ON ')
  FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
 WHERE c.relname LIKE 'lightrag%' AND {chosen} ORDER BY 1, 2
"""
CORE = "c.relname NOT LIKE 'lightrag_vdb%'"
VECTORS = f"c.relname LIKE 'lightrag_vdb%{SUFFIX}'"


@pytest.fixture(scope="module")
async def stock(cluster: Cluster, worker_number: int) -> AsyncIterator[DatabaseUrls]:
    """A database in which LightRAG has made its own tables, with the rights that takes."""
    name = f"trellis_stock_{worker_number}"
    urls = await provision_database(cluster.admin_url, name, cluster.passwords)
    url = make_url(urls.owner)
    config = ClientManager.get_config("PGVectorStorage") | {
        "host": url.host,
        "port": url.port,
        "user": url.username,
        "password": url.password,
        "database": url.database,
    }
    db = PostgreSQLDB(config)
    await db.initdb()
    await db.check_tables()
    await db.execute(GRAPH_DDL)
    for kind in ("CHUNKS", "ENTITY", "RELATION"):
        base = f"LIGHTRAG_VDB_{kind}"
        await PGVectorStorage.setup_table(db, f"{base}_{SUFFIX}", "w", 8, base, base)
    await db.pool.close()
    yield urls
    await drop_database(cluster.admin_url, name)


async def catalog(url: str, query: str, chosen: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(query.format(chosen=chosen))]
    finally:
        await connection.close()


def without_repeated(rows: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [row for row in rows if not REPEATED.fullmatch(str(row[2]))]


@pytest.mark.parametrize("query", [COLUMNS, CONSTRAINTS, INDEXES], ids=["columns", "constraints", "indexes"])
async def test_migrated_tables_are_lightrags(stock: DatabaseUrls, urls: DatabaseUrls, query: str) -> None:
    expected = without_repeated(await catalog(stock.owner, query, CORE))
    found = [row for row in await catalog(urls.owner, query, CORE) if row[1] not in OURS]
    assert len({row[0] for row in expected}) == 10
    assert found == expected


@pytest.mark.parametrize("query", [COLUMNS, CONSTRAINTS, INDEXES], ids=["columns", "constraints", "indexes"])
async def test_vector_tables_are_lightrags(
    stock: DatabaseUrls, urls: DatabaseUrls, owner_database: Database, query: str
) -> None:
    async with owner_database.system() as session:
        await create_vector_tables(session, SUFFIX, 8)
    expected = without_repeated(await catalog(stock.owner, query, VECTORS))
    assert len({row[0] for row in expected}) == 3
    shared = [row for row in expected if not str(row[1]).endswith("_hnsw_cosine")]
    assert len(expected) - len(shared) == (3 if query is INDEXES else 0)
    assert await catalog(urls.owner, query, VECTORS) == shared


@pytest.mark.parametrize("length", range(20, 42))
@pytest.mark.parametrize("ending", ["id", "workspace_id", "hnsw_cosine"])
def test_index_names_are_lightrags(length: int, ending: str) -> None:
    table = "lightrag_vdb_relation_" + "x" * length
    assert index_name(table, ending) == _safe_index_name(table.upper(), ending)


@pytest.mark.parametrize("dimension", [8, 2000, 2001])
async def test_tables_are_created_once_and_dropped(owner_database: Database, dimension: int) -> None:
    suffix = f"once_{dimension}d"
    async with owner_database.system() as session:
        await create_vector_tables(session, suffix, dimension)
        await create_vector_tables(session, suffix, dimension)
        with pytest.raises(DimensionMismatch) as caught:
            await create_vector_tables(session, suffix, dimension + 1)
        assert caught.value.facts == {"expected": dimension + 1, "found": dimension}
    async with owner_database.system() as session:
        await drop_vector_tables(session, suffix)
        await drop_vector_tables(session, suffix)
        await create_vector_tables(session, suffix, 3)
        await drop_vector_tables(session, suffix)


@pytest.mark.parametrize(
    ("model", "suffix"),
    [
        ("offline-use", "offline_use_512d"),
        ("Text-Embedding.3/Large ", "text_embedding_3_large_512d"),
        ("bge-m3:latest", "bge_m3_latest_512d"),
    ],
)
def test_suffixes_are_what_lightrag_makes_of_a_model(model: str, suffix: str) -> None:
    assert vector_suffix(model, 512) == suffix


def test_long_models_get_suffixes_of_their_own_that_fit() -> None:
    one, other = (vector_suffix("organisation/very-long-embedding-model-name-" + end, 1024) for end in ("a", "b"))
    assert one != other
    for suffix in (one, other):
        assert max(map(len, vector_table_names(suffix))) <= 63
        assert suffix.endswith("_1024d")


@pytest.mark.parametrize("suffix", ["", "a b", 'x"; DROP TABLE passages; --', "x" * 42, "Ä_8d"])
async def test_a_suffix_that_is_no_identifier_is_refused(owner_database: Database, suffix: str) -> None:
    async with owner_database.system() as session:
        with pytest.raises(Invalid):
            await create_vector_tables(session, suffix, 8)


async def test_the_app_role_has_no_access_to_the_graph(urls: DatabaseUrls) -> None:
    connection = await asyncpg.connect(urls.app)
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch("SELECT 1 FROM lightrag_graph_nodes")
    finally:
        await connection.close()
