"""A workspace that has grown large gets a vector index of its own, while others write, and nobody sees a difference."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import asyncpg
import numpy as np
import pytest
from lightrag.kg.postgres_impl import SQL_TEMPLATES
from pgvector import Vector
from sqlalchemy import text

from app.db.session import Database
from app.db.vector_partitions import PartitionWork, VectorPartitions
from app.db.vector_tables import create_vector_tables, drop_vector_tables
from app.domain.ingestion.partitions import VectorUpkeep
from app.retrieval.contract import SearchRequest
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase, engine_workspace
from app.retrieval.lightrag.search import GraphSearch
from tests.factories import Tenancy
from tests.retrieval.lightrag.conftest import make_corpus
from tests.retrieval.lightrag.doubles import SUFFIX, Corpus
from tests.retrieval.lightrag.test_search import everything, ingest

DIMENSION = 64
PARTS = "parts_64d"
ENTITIES = f"lightrag_vdb_entity_{PARTS}"
# What LightRAG asks for and the name of a hit, for each of its three legs.
LEGS = {
    "entity": ("entities", "entity_name", "entity_name", ""),
    "relation": ("relationships", "src_id", "source_id, target_id", ", 'target'"),
    "chunks": ("chunks", "id", "full_doc_id", ""),
}
INSERT = "INSERT INTO {table} (workspace, id, {names}, content_vector) SELECT $1, u.id, u.id{more}, u.v FROM unnest($2::text[], $3::vector[]) u(id, v)"


@pytest.fixture(autouse=True)
async def tables(owner_database: Database) -> AsyncIterator[None]:
    async with owner_database.system() as session:
        await create_vector_tables(session, PARTS, DIMENSION)
    yield
    async with owner_database.system() as session:
        await drop_vector_tables(session, PARTS)


def vectors(count: int, seed: int, around: np.ndarray | None = None) -> np.ndarray:
    found = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return found if around is None else found * 0.2 + around


async def fill(pool: EngineDatabase, corpus: Corpus, leg: str, matrix: np.ndarray, prefix: str = "e") -> None:
    _, _, names, more = LEGS[leg]
    ids = [f"{prefix}{number}" for number in range(len(matrix))]
    workspace = corpus.workspace.ref.engine_name
    statement = INSERT.format(table=f"lightrag_vdb_{leg}_{PARTS}", names=names, more=more)
    with engine_workspace(workspace):
        await pool.fetch(statement, workspace, ids, [Vector(vector) for vector in matrix])


async def nearest(pool: EngineDatabase, corpus: Corpus, leg: str, query: np.ndarray, limit: int = 20) -> list[str]:
    template, name, _, _ = LEGS[leg]
    statement = SQL_TEMPLATES[template].format(table_name=f"lightrag_vdb_{leg}_{PARTS}", vector_cast="vector")
    workspace = corpus.workspace.ref.engine_name
    with engine_workspace(workspace):
        rows = await pool.fetch(statement, workspace, 2.0, limit, query)
    return [row[name] for row in rows]


async def tend(database: Database, table: str, workspace_id: UUID) -> str:
    async with database.system() as session:
        return await VectorPartitions(session).tend(PartitionWork(table, workspace_id))


async def partitions(owner_database: Database, table: str) -> Sequence[str]:
    """Names of partitions that have an ANN index."""
    statement = text(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = to_regclass(:table)"
        " AND EXISTS (SELECT 1 FROM pg_indexes x WHERE x.tablename = c.relname AND x.indexdef LIKE '%USING hnsw%')"
    )
    async with owner_database.system() as session:
        return (await session.scalars(statement, {"table": table})).all()


@pytest.mark.parametrize("leg", LEGS)
async def test_a_small_workspace_gets_full_results_beside_a_large_one(
    pool: EngineDatabase, database: Database, corpus: Corpus, other_corpus: Corpus, leg: str
) -> None:
    query = vectors(1, 1)[0]
    await fill(pool, other_corpus, leg, vectors(3000, 2, around=query))
    small = vectors(30, 3)
    await fill(pool, corpus, leg, small)
    cosines = small @ query / np.linalg.norm(small, axis=1)
    expected = [f"e{number}" for number in np.argsort(-cosines)[:20]]
    for _ in range(7):  # after five runs Postgres may choose another plan
        assert await nearest(pool, corpus, leg, query) == expected
    large_before = await nearest(pool, other_corpus, leg, query)
    assert await tend(database, f"lightrag_vdb_{leg}_{PARTS}", other_corpus.workspace.ref.workspace_id) == "split"
    assert await nearest(pool, corpus, leg, query) == expected
    large_after = await nearest(pool, other_corpus, leg, query)
    assert len(large_after) == 20
    assert len(set(large_before) & set(large_after)) >= 18


async def test_a_partition_is_made_once_while_others_write(
    pool: EngineDatabase, database: Database, owner_database: Database, corpus: Corpus, other_corpus: Corpus
) -> None:
    await fill(pool, corpus, "entity", vectors(1500, 4))
    splitting = asyncio.Event()
    written = 0

    async def write() -> None:
        nonlocal written
        workspace = corpus.workspace.ref.engine_name
        while not splitting.is_set() or written < 10:
            await fill(pool, corpus, "entity", vectors(3, written), f"late{written}.")
            await fill(pool, other_corpus, "entity", vectors(3, written), f"late{written}.")
            with engine_workspace(workspace):
                await pool.fetch(f"DELETE FROM {ENTITIES} WHERE workspace = $1 AND id = $2", workspace, f"e{written}")
                await pool.fetch(
                    f"UPDATE {ENTITIES} SET content = 'changed' WHERE workspace = $1 AND id = $2",
                    workspace,
                    f"e{1000 + written}",
                )
            written += 1

    async def split() -> list[str]:
        workspace_id = corpus.workspace.ref.workspace_id
        outcomes = await asyncio.gather(*[tend(database, ENTITIES, workspace_id) for _ in range(2)])
        splitting.set()
        return outcomes

    outcomes, _ = await asyncio.gather(split(), write())
    assert sorted(outcomes)[-1] == "split"
    assert sorted(outcomes)[0] in ("busy", "nothing")
    assert await tend(database, ENTITIES, corpus.workspace.ref.workspace_id) == "nothing"
    number = corpus.workspace.ref.number
    assert await partitions(owner_database, ENTITIES) == [f"{ENTITIES}_w{number}"]
    count = "SELECT count(*), count(*) FILTER (WHERE content = 'changed') FROM {table}"
    async with owner_database.system() as session:
        own = (await session.execute(text(count.format(table=f"{ENTITIES}_w{number}")))).one()
        rest = (await session.execute(text(count.format(table=f"{ENTITIES}_rest")))).one()
    assert tuple(own) == (1500 + 3 * written - written, written)
    assert tuple(rest) == (3 * written, 0)
    assert written >= 10


async def test_the_index_is_used_and_other_workspaces_see_nothing_of_the_partition(
    pool: EngineDatabase, database: Database, corpus: Corpus, other_corpus: Corpus, urls: object
) -> None:
    await fill(pool, corpus, "entity", vectors(2000, 5))
    await tend(database, ENTITIES, corpus.workspace.ref.workspace_id)
    workspace = corpus.workspace.ref.engine_name
    search = SQL_TEMPLATES["entities"].format(table_name=ENTITIES, vector_cast="vector")
    with engine_workspace(workspace):
        plan = await pool.fetch("EXPLAIN " + search, workspace, 2.0, 20, vectors(1, 6)[0])
        assert any("content_vector_idx" in row[0] for row in plan)
    with engine_workspace(other_corpus.workspace.ref.engine_name):
        assert await pool.fetch(f"SELECT 1 FROM {ENTITIES}") == []
        assert await pool.fetch(search, workspace, 2.0, 20, vectors(1, 6)[0]) == []
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await pool.fetch(f"SELECT 1 FROM {ENTITIES}_w{corpus.workspace.ref.number}")


async def test_partitions_are_fenced_like_their_tables(
    database: Database, owner_database: Database, corpus: Corpus
) -> None:
    for table in (ENTITIES, f"passage_vectors_{PARTS}"):
        assert await tend(database, table, corpus.workspace.ref.workspace_id) == "split"
        statement = text(
            "SELECT c.relrowsecurity AND c.relforcerowsecurity, array_agg((p.policyname, p.roles, p.qual, p.with_check)::text)"
            "  FROM pg_class c JOIN pg_policies p ON p.tablename = c.relname WHERE c.relname = ANY (:names) GROUP BY c.oid, 1"
        )
        names = [table, f"{table}_rest", f"{table}_w{corpus.workspace.ref.number}"]
        async with owner_database.system() as session:
            found = (await session.execute(statement, {"names": names})).all()
        assert len(found) == 3
        assert all(is_fenced and sorted(policies) == sorted(found[0][1]) for is_fenced, policies in found)
        assert len(found[0][1]) == 2


async def test_only_large_workspaces_are_work_and_partitions_go_with_them(
    pool: EngineDatabase, database: Database, owner_database: Database, tenancy: Tenancy, corpus: Corpus
) -> None:
    doomed = await make_corpus(tenancy)
    await fill(pool, doomed, "entity", vectors(60, 7))
    await fill(pool, corpus, "entity", vectors(50, 8))
    large = PartitionWork(ENTITIES, doomed.workspace.ref.workspace_id)

    async def work() -> list[PartitionWork]:
        async with database.system() as session:
            return [found for found in await VectorPartitions(session).list_work(50) if found.table == ENTITIES]

    assert await work() == [large]
    assert await tend(database, large.table, large.workspace_id) == "split"
    assert await work() == []
    async with owner_database.system() as session:
        for table in ("workspace_leases", "corpus_versions"):
            await session.execute(text(f"DELETE FROM {table} WHERE workspace_id = :id"), {"id": large.workspace_id})
        await session.execute(text("DELETE FROM workspaces WHERE id = :id"), {"id": large.workspace_id})
    assert await work() == [large]
    assert await VectorUpkeep(database).run() == 1
    assert await work() == []
    assert await partitions(owner_database, ENTITIES) == []
    assert len(await nearest(pool, corpus, "entity", vectors(1, 9)[0])) == 20


async def test_a_table_in_use_is_left_for_the_next_run(
    pool: EngineDatabase, database: Database, owner_database: Database, tenancy: Tenancy, corpus: Corpus
) -> None:
    gone = await make_corpus(tenancy)
    await tend(database, ENTITIES, gone.workspace.ref.workspace_id)
    async with owner_database.system() as session:
        for table in ("workspace_leases", "corpus_versions"):
            await session.execute(
                text(f"DELETE FROM {table} WHERE workspace_id = :id"), {"id": gone.workspace.ref.workspace_id}
            )
        await session.execute(text("DELETE FROM workspaces WHERE id = :id"), {"id": gone.workspace.ref.workspace_id})
    async with owner_database.system() as session:
        await session.execute(text(f"SELECT 1 FROM {ENTITIES} LIMIT 1"))
        assert await VectorUpkeep(database).run() == 0
    assert await VectorUpkeep(database).run() == 1


async def test_runtime_roles_cannot_have_other_tables_tended(
    pool: EngineDatabase, database: Database, corpus: Corpus
) -> None:
    with pytest.raises(Exception, match="there is no vector table passages"):
        await tend(database, "passages", corpus.workspace.ref.workspace_id)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await pool.fetch("SELECT tend_vector_partition($1, $2)", ENTITIES, corpus.workspace.ref.workspace_id)


async def test_an_engine_goes_on_in_a_partition(
    index: GraphWriter, search: GraphSearch, database: Database, corpus: Corpus
) -> None:
    """The same searches, inserts and passages before and after all four tables were split."""
    await ingest(index, corpus, "Ada Marsh founded Orbit Works in Lisbon.")
    request = SearchRequest("Who founded Orbit Works in Lisbon?", "mix")
    before = everything(await search.search(corpus.workspace, request))
    for table in (*(f"lightrag_vdb_{leg}_{SUFFIX}" for leg in LEGS), f"passage_vectors_{SUFFIX}"):
        assert await tend(database, table, corpus.workspace.ref.workspace_id) == "split"
    assert everything(await search.search(corpus.workspace, request)) == before
    await ingest(index, corpus, "Ada Marsh left Orbit Works for Tall Pine.")
    after = everything(await search.search(corpus.workspace, SearchRequest("Who left for Tall Pine?", "mix")))
    assert "Tall Pine" in after
