"""The same question on the same corpus has the same context to the byte, in every mode, however rows lie in their tables."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import text

from app.db.session import Database
from app.domain.queries.context import Budgets, render_context
from app.retrieval.contract import MODES, THEME_MODES, SearchRequest, SearchResult
from app.retrieval.filters import EvidenceFilter
from app.retrieval.lazy.engine import LazySearch
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.search import GraphSearch
from app.text.tokens import count_again
from tests.retrieval.lightrag.conftest import OURS_AND_AGE
from tests.retrieval.lightrag.doubles import SUFFIX, Corpus
from tests.retrieval.lightrag.test_search import ingest

pytestmark = OURS_AND_AGE

# Themes need a map, which is not of this engine.
MODES_HERE = [mode for mode in MODES if mode not in THEME_MODES]
QUESTION = "What did Orbit Works repair in Lisbon, and who paid Tall Pine?"
# All say the same, so that whatever ranks them finds ties.
SAME = "Orbit Works repaired a crane in Lisbon. Tall Pine paid Orbit Works."
ENGINE_TABLES = (f"lightrag_vdb_chunks_{SUFFIX}", f"lightrag_vdb_entity_{SUFFIX}", f"lightrag_vdb_relation_{SUFFIX}")


@pytest.fixture
async def corpus_of_equals(index: GraphWriter, corpus: Corpus) -> Corpus:
    """Documents that say the same of the same names, and names of which nothing tells one from the others."""
    for number in range(8):
        await ingest(index, corpus, SAME, f"Tall Pine {chr(65 + number)}x paid Orbit Works.")
    return corpus


async def ask(database: Database, graph: GraphSearch, corpus: Corpus, request: SearchRequest) -> SearchResult:
    search = graph if MODES[request.mode] == "graph" else LazySearch(database)
    return await search.search(corpus.workspace, request)


def rendered(result: SearchResult) -> str:
    evidence = repr((result.passages, result.entities, result.relations))
    return render_context(result, Budgets(300, 300, 700), count_again).text + evidence


async def turn_over(corpus: Corpus, pool: EngineDatabase) -> None:
    """Write the rows anew, the last first, so that tables hold them in another order."""
    ref = corpus.workspace.ref
    async with corpus.database.tenant(corpus.tenant_id) as session:
        of_workspace = {"workspace": ref.workspace_id}
        for table, key in ((f"passage_vectors_{SUFFIX}", "passage_id"), ("passages", "id")):
            ids = await session.scalars(
                text(f"SELECT {key} FROM {table} WHERE workspace_id = :workspace ORDER BY {key} DESC"), of_workspace
            )
            for each in list(ids):
                await session.execute(
                    text(f"UPDATE {table} SET version_id = version_id WHERE workspace_id = :workspace AND {key} = :id"),
                    of_workspace | {"id": each},
                )
    with inside(ref):
        for table in ENGINE_TABLES:
            for row in await pool.fetch(
                f"SELECT id FROM {table} WHERE workspace = $1 ORDER BY id DESC", ref.engine_name
            ):
                await pool.fetch(
                    f"UPDATE {table} SET file_path = file_path WHERE workspace = $1 AND id = $2",
                    ref.engine_name,
                    row["id"],
                )


async def switch_indexes(pool: EngineDatabase, value: str) -> None:
    """Of the connection that is used next: without indexes rows come as they lie in the table."""
    for setting in ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"):
        await pool.fetch("SELECT set_config($1, $2, false)", setting, value)


async def test_equal_scores_do_not_make_answers_differ(
    corpus_of_equals: Corpus, database: Database, search: GraphSearch, pool: EngineDatabase
) -> None:
    requests = [SearchRequest(QUESTION, mode, top_k=5, graph_top_k=4) for mode in MODES_HERE]
    narrowed = EvidenceFilter(media_types=("text/plain",))
    requests += [SearchRequest(QUESTION, mode, top_k=5, graph_top_k=4, filter=narrowed) for mode in MODES_HERE]
    before = [rendered(await ask(database, search, corpus_of_equals, request)) for request in requests]
    await turn_over(corpus_of_equals, pool)
    await switch_indexes(pool, "off")
    try:
        after = [rendered(await ask(database, search, corpus_of_equals, request)) for request in requests]
    finally:
        await switch_indexes(pool, "on")
    for request, one, other in zip(requests, before, after, strict=True):
        assert one == other, request


async def test_every_mode_gives_evidence_of_one_shape(
    corpus_of_equals: Corpus, database: Database, search: GraphSearch
) -> None:
    for mode in MODES_HERE:
        result = await ask(database, search, corpus_of_equals, SearchRequest(QUESTION, mode, top_k=5))
        kinds: tuple[Sequence[Any], ...] = (result.passages, result.entities, result.relations)
        for pieces in kinds:
            scores = [piece.score for piece in pieces]
            assert scores == sorted(scores, reverse=True), mode
            assert all(score > 0 for score in scores), mode
            assert all(piece.sources for piece in pieces), mode
            assert all(source.rank >= 1 for piece in pieces for source in piece.sources), mode
        ids = [*(found.id for found in result.entities), *(found.id for found in result.relations)]
        assert len(set(ids)) == len(ids)


async def test_a_filter_brings_as_many_as_meet_it(
    index: GraphWriter, corpus: Corpus, database: Database, search: GraphSearch
) -> None:
    """Twenty asked, twenty got, although a hundred others are nearer."""
    far = [await ingest(index, corpus, f"Mill {chr(65 + number)}x sold a boat far away.") for number in range(20)]
    near = [f"Orbit {chr(65 + number % 26)}{number}x repaired a crane in Lisbon." for number in range(100)]
    await ingest(index, corpus, *near)
    wanted = EvidenceFilter(document_ids=tuple(version.document_id for version in far))
    for mode in MODES_HERE:
        request = SearchRequest("Orbit repaired a crane in Lisbon", mode, top_k=20, graph_top_k=20, filter=wanted)
        result = await ask(database, search, corpus, request)
        assert {found.version_id for found in result.passages} == {version.version_id for version in far}, mode
        if mode in ("local", "hybrid", "mix"):
            assert len(result.entities) == 20, mode
