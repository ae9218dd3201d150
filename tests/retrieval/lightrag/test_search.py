"""The five graph modes: exact citations, trusted versions only, never a silent nothing."""

import pytest
from sqlalchemy import text

from app.providers.contract import Purpose
from app.providers.usage import meter_usage
from app.retrieval.contract import GRAPH_MODES, Keywords, PassageRow, SearchRequest, SearchResult
from app.retrieval.lazy.index import ConceptIndex
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.search import GraphSearch, chunk_of
from tests.retrieval.lightrag.conftest import OURS_AND_AGE
from tests.retrieval.lightrag.doubles import Corpus, VersionChunks, ignore

pytestmark = OURS_AND_AGE

ORBIT = "Ada Marsh founded Orbit Works in Lisbon."
RIVAL = "Orbit Works competes with Tall Pine over harbour cranes."
QUIET = "the saffron ledger lists every lantern sold in winter."


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str, state: str = "ready") -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await index_words(corpus, version)
    await corpus.trust(version, engine="lazy")
    await corpus.trust(version, state)
    return version


async def index_words(corpus: Corpus, version: VersionChunks) -> None:
    async with corpus.database.tenant(corpus.tenant_id) as session:
        rows = await session.execute(
            text("SELECT id, ordinal, text FROM passages WHERE version_id = :version ORDER BY ordinal"),
            {"version": version.version_id},
        )
        passages = [PassageRow(row.id, row.ordinal, row.text, ()) for row in rows]
        await ConceptIndex().add(session, corpus.workspace.ref, "a title", passages)


def everything(result: SearchResult) -> str:
    """All text of a result."""
    return " ".join(
        [
            *(found.text for found in result.passages),
            *(f"{found.name} {found.description}" for found in result.entities),
            *(f"{found.source} {found.target} {found.description} {found.keywords}" for found in result.relations),
        ]
    )


@pytest.mark.parametrize("mode", GRAPH_MODES)
async def test_every_mode_cites_exact_passages_for_one_embedding_call_and_no_chat_call(
    index: GraphWriter, search: GraphSearch, corpus: Corpus, mode: str
) -> None:
    version = await ingest(index, corpus, ORBIT, RIVAL)
    asked = len(corpus.chat.asked)
    with meter_usage() as meter:
        result = await search.search(corpus.workspace, SearchRequest("Who founded Orbit Works in Lisbon?", mode))
    assert result.passages[0].text == ORBIT
    assert result.passages[0].version_id == version.version_id
    assert result.passages[0].document_id == version.document_id
    assert result.passages[0].sources
    assert meter.embedding_calls == 1
    assert meter.calls == 0
    assert len(corpus.chat.asked) == asked
    if mode == "naive":
        assert result.entities == ()
    else:
        assert "Orbit Works" in {found.name for found in result.entities}
        assert {found.document_ids for found in result.entities} == {(version.document_id,)}
    assert set(result.stage_ms) == {"keywords", "retrieve", "trust", "rank"}


async def test_keywords_by_the_model_cost_one_counted_call(
    index: GraphWriter, search: GraphSearch, corpus: Corpus
) -> None:
    await ingest(index, corpus, ORBIT)
    with meter_usage() as meter:
        await search.search(corpus.workspace, SearchRequest("Who is Ada Marsh?", "mix", keywords="llm"))
        await search.search(corpus.workspace, SearchRequest("Who is Ada Marsh?", "mix", keywords="llm"))
    assert corpus.chat.count(Purpose.KEYWORDS) == 2
    assert meter.calls == 2


async def test_empty_keywords_of_the_model_are_replaced(
    index: GraphWriter, search: GraphSearch, corpus: Corpus
) -> None:
    await ingest(index, corpus, ORBIT)
    corpus.chat.keywords = '{"high_level_keywords": [], "low_level_keywords": []}'
    question = "Which person was it again who founded the company Orbit Works in Lisbon?"
    result = await search.search(corpus.workspace, SearchRequest(question, "hybrid", keywords="llm"))
    assert result.details["keywords"]["low"]
    assert result.passages


async def test_what_several_chunks_said_are_lines_of_one_description(
    index: GraphWriter, search: GraphSearch, corpus: Corpus
) -> None:
    await ingest(index, corpus, ORBIT)
    await ingest(index, corpus, RIVAL)
    given = Keywords(low=("Orbit Works",))
    result = await search.search(corpus.workspace, SearchRequest("tell me more", "local", keywords=given))
    described = {found.name: found.description for found in result.entities}["Orbit Works"]
    assert "<SEP>" not in described
    assert len(described.splitlines()) == 2


async def test_given_keywords_are_used(index: GraphWriter, search: GraphSearch, corpus: Corpus) -> None:
    await ingest(index, corpus, ORBIT, RIVAL)
    given = Keywords(high=("cranes",), low=("Tall Pine",))
    result = await search.search(corpus.workspace, SearchRequest("tell me more", "hybrid", keywords=given))
    assert result.entities[0].name == "Tall Pine"
    assert result.details["keywords"] == {"high": ["cranes"], "low": ["Tall Pine"]}


async def test_a_chunk_that_matches_by_words_only_is_found_in_mix(
    index: GraphWriter, search: GraphSearch, corpus: Corpus
) -> None:
    version = await ingest(index, corpus, *(f"Company {chr(65 + n)}x sells boats {n}." for n in range(24)), QUIET)
    result = await search.search(corpus.workspace, SearchRequest("saffron ledger", "mix"))
    found = result.passages[0]
    assert found.text == QUIET
    assert found.version_id == version.version_id
    assert "words" in {source.leg for source in found.sources}


@pytest.mark.parametrize("mode", GRAPH_MODES)
@pytest.mark.parametrize("query", ["?", "hi", "的", "saffron " * 600])
async def test_odd_questions_get_evidence_or_a_note(
    index: GraphWriter, search: GraphSearch, corpus: Corpus, mode: str, query: str
) -> None:
    await ingest(index, corpus, ORBIT, QUIET)
    result = await search.search(corpus.workspace, SearchRequest(query, mode))
    assert result.passages or result.notes
    if "saffron" in query and mode in ("naive", "mix"):
        assert result.passages[0].text == QUIET


@pytest.mark.parametrize("mode", GRAPH_MODES)
async def test_an_empty_workspace_says_so(search: GraphSearch, corpus: Corpus, mode: str) -> None:
    result = await search.search(corpus.workspace, SearchRequest("Who founded Orbit Works?", mode))
    assert result.passages == ()
    assert "nothing in the workspace matches this question" in result.notes


@pytest.mark.parametrize("mode", GRAPH_MODES)
async def test_versions_that_are_not_trusted_lend_nothing(
    index: GraphWriter, search: GraphSearch, corpus: Corpus, mode: str
) -> None:
    await ingest(index, corpus, ORBIT)
    hidden = await ingest(index, corpus, "Ada Marsh hides the Quartz Cellar in Lisbon.", state="failed")
    request = SearchRequest("What does Ada Marsh hide in Lisbon, Quartz Cellar?", mode)
    result = await search.search(corpus.workspace, request)
    assert "Quartz" not in everything(result)
    assert hidden.document_id not in {found for entity in result.entities for found in entity.document_ids}
    assert result.withheld
    assert result.passages


async def test_partial_versions_are_used_where_asked_for(
    index: GraphWriter, search: GraphSearch, corpus: Corpus
) -> None:
    await ingest(index, corpus, ORBIT, state="partial")
    request = SearchRequest("Who founded Orbit Works?", "mix")
    assert (await search.search(corpus.workspace, request)).passages == ()
    asked = SearchRequest("Who founded Orbit Works?", "mix", include_partial=True)
    result = await search.search(corpus.workspace, asked)
    assert result.passages[0].is_partial
    assert result.entities


async def test_what_is_withheld_is_made_up_for(index: GraphWriter, search: GraphSearch, corpus: Corpus) -> None:
    for number in range(30):
        await ingest(index, corpus, f"Orbit Works repaired crane {number}.", state="failed")
    trusted = [await ingest(index, corpus, f"Orbit Works painted a boat with paint {n}.") for n in range(5)]
    result = await search.search(corpus.workspace, SearchRequest("Orbit Works repaired crane", "naive", top_k=5))
    assert {found.version_id for found in result.passages} == {version.version_id for version in trusted}


async def test_budgets_of_the_graph_leave_the_passages(index: GraphWriter, search: GraphSearch, corpus: Corpus) -> None:
    await ingest(index, corpus, ORBIT, RIVAL)
    request = SearchRequest("Orbit Works in Lisbon", "mix", max_entity_tokens=0, max_relation_tokens=0)
    result = await search.search(corpus.workspace, request)
    assert result.entities == ()
    assert result.relations == ()
    assert result.passages


@pytest.mark.usefixtures("stores_name")
def test_ids_that_are_not_ours_are_no_chunks() -> None:
    assert chunk_of("chunk-5f3a") is None
    assert chunk_of("dup-chunk-001") is None
