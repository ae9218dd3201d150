"""Workspaces side by side: nothing of one is ever seen, written or listed in another."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from app.db.session import Database
from app.retrieval.contract import GRAPH_MODES, GraphStoreName, SearchRequest
from app.retrieval.entity_contract import EntityNotFound
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.search import GraphSearch
from app.settings import Settings
from tests.factories import Tenancy
from tests.retrieval.lightrag.conftest import OURS_AND_AGE, make_corpus
from tests.retrieval.lightrag.doubles import SUFFIX, Corpus, VersionChunks, ignore
from tests.retrieval.lightrag.stored_graph import graph_edges, graph_nodes
from tests.retrieval.lightrag.test_search import everything

TABLES = {
    "lightrag_doc_full": "id",
    "lightrag_doc_chunks": "full_doc_id",
    "lightrag_doc_status": "id",
    "lightrag_full_entities": "id",
    "lightrag_full_relations": "id",
    "lightrag_entity_chunks": "chunk_ids::text",
    "lightrag_relation_chunks": "chunk_ids::text",
    "lightrag_llm_cache": "chunk_id",
    f"lightrag_vdb_chunks_{SUFFIX}": "full_doc_id",
    f"lightrag_vdb_entity_{SUFFIX}": "chunk_ids::text",
    f"lightrag_vdb_relation_{SUFFIX}": "chunk_ids::text",
}
AWKWARD = [
    ("tenant-1", "tenant_1", "tenant.1"),
    ("北京分公司", "上海分公司", "广州分公司"),
    ("n" * 69 + "a", "n" * 69 + "b", "n" * 69 + "c"),
]


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str) -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    return version


@OURS_AND_AGE
@pytest.mark.parametrize("mode", GRAPH_MODES)
async def test_a_marker_of_one_workspace_is_never_seen_from_another(
    index: GraphWriter,
    search: GraphSearch,
    entities: GraphEntities,
    corpus: Corpus,
    other_corpus: Corpus,
    mode: str,
) -> None:
    await ingest(index, corpus, "Zyxomma Alpha works with Quietus in Lisbon.")
    await ingest(index, other_corpus, "Zyxomma Beta works with Ruckus in Lisbon.")
    for mine, foreign in ((corpus, "Beta"), (other_corpus, "Alpha")):
        request = SearchRequest("Who works with Quietus, Ruckus or Zyxomma Alpha, Zyxomma Beta in Lisbon?", mode)
        result = await search.search(mine.workspace, request)
        assert "Zyxomma" in everything(result)
        assert foreign not in everything(result)
        listed = await entities.list(mine.workspace, prefix=None, after=None, limit=50)
        assert foreign not in str(listed)
        with pytest.raises(EntityNotFound):
            await entities.get(mine.workspace, f"Zyxomma {foreign}")


@OURS_AND_AGE
async def test_two_workspaces_written_at_once_keep_their_rows_apart(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus, other_corpus: Corpus, owner_database: Database
) -> None:
    versions: dict[str, list[str]] = {}
    for number in range(10):
        both = await asyncio.gather(
            ingest(index, corpus, f"Alpha {number} met Shared Name.", f"Gamma {number} met Shared Name."),
            ingest(index, other_corpus, f"Beta {number} met Shared Name.", f"Delta {number} met Shared Name."),
        )
        for mine, version in zip((corpus, other_corpus), both, strict=True):
            versions.setdefault(mine.workspace.ref.engine_name, []).append(str(version.version_id))
    own, foreign = versions
    async with owner_database.system() as session:
        for table, column in TABLES.items():
            statement = text(f"SELECT {column} FROM {table} WHERE workspace = :workspace")
            found = " ".join(filter(None, await session.scalars(statement, {"workspace": own})))
            assert all(version in found for version in versions[own]), table
            assert not any(version in found for version in versions[foreign]), table
    for graph in (await graph_nodes(pool, corpus.workspace.ref), await graph_edges(pool, corpus.workspace.ref)):
        assert all(version in str(graph) for version in versions[own])
        assert not any(version in str(graph) for version in versions[foreign])


@OURS_AND_AGE
@pytest.mark.parametrize("names", AWKWARD)
async def test_names_that_look_alike_are_separate_graphs(
    index: GraphWriter, entities: GraphEntities, tenancy: Tenancy, graph_store: GraphStoreName, names: tuple[str, ...]
) -> None:
    corpora = [await make_corpus(tenancy, graph_store) for _ in names]
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        for corpus, name in zip(corpora, names, strict=True):
            await session.execute(
                text("UPDATE workspaces SET name = :name WHERE id = :id"),
                {"name": name, "id": corpus.workspace.ref.workspace_id},
            )
    for number, corpus in enumerate(corpora):
        await ingest(index, corpus, f"Only Here{number} exists.")
    for number, corpus in enumerate(corpora):
        listed = await entities.list(corpus.workspace, prefix=None, after=None, limit=9)
        assert [entity.name for entity in listed] == [f"Only Here{number}"]


@OURS_AND_AGE
async def test_twenty_inserts_one_after_another_on_one_loop(
    index: GraphWriter, search: GraphSearch, corpus: Corpus
) -> None:
    for number in range(20):
        await asyncio.create_task(ingest(index, corpus, f"Person {chr(65 + number)}x knows Hub City."))
    result = await search.search(corpus.workspace, SearchRequest("Hub City", "local"))
    hub = next(found for found in result.entities if found.name == "Hub City")
    assert len(hub.document_ids) == 20


ONE_LOOP_AFTER_ANOTHER = """
import asyncio, sys
from pathlib import Path
from uuid import UUID
from pydantic import SecretStr
from app.db.session import Database
from app.retrieval.lightrag.adapter import open_graph_engine
from app.settings import Settings
from tests.retrieval.lightrag.doubles import Corpus, ignore

settings = Settings(
    database_url=SecretStr(sys.argv[1]), engine_database_url=SecretStr(sys.argv[2]), scratch_dir=Path(sys.argv[3])
)

async def main(number):
    database = Database(sys.argv[1], pool_size=3)
    corpus = Corpus.of(database, UUID(sys.argv[4]), UUID(sys.argv[5]), 1)
    async with open_graph_engine(settings, database) as engine:
        version = await corpus.add(f"Person {number} knows Loop Town.")
        await asyncio.gather(*(engine.index.extract(corpus.workspace, version, ignore) for _ in range(3)))
        await engine.index.insert(corpus.workspace, version, corpus.lease)
    await database.close()

for number in range(3):
    asyncio.run(main(number))
print("done")
"""


async def test_a_process_may_open_the_engine_on_one_loop_after_another(
    settings: Settings, corpus: Corpus, tmp_path: Path
) -> None:
    ref = corpus.workspace.ref
    done = await asyncio.to_thread(
        subprocess.run,
        [
            sys.executable,
            "-X",
            "dev",
            "-c",
            ONE_LOOP_AFTER_ANOTHER,
            settings.database_url.get_secret_value(),
            settings.engine_database_url.get_secret_value(),
            str(tmp_path),
            str(ref.tenant_id),
            str(ref.workspace_id),
        ],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip().endswith("done"), done.stderr[-2000:]
    assert "loop" not in done.stderr
