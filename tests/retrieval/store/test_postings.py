"""BM25 over our own postings: the formula, the choice of terms, and whose postings are read."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import text

from app.retrieval.store import postings
from app.retrieval.store.postings import K1, B, LexicalResult, count_terms, search_terms
from app.text.concepts.terms import terms
from app.text.concepts.words import tokens
from tests.retrieval.corpora import Corpus

PLACES = {
    "Lighthouse": "The keeper climbed the tower every evening and lit the lamp for ships in the bay.",
    "Harbour": "Ships unload coal and timber in the bay, and ships take on water.",
    "Orchard": "Apples ripen late on the northern slope, where the keeper of bees lives.",
    "Mill": "The wheel of the mill turns slowly in summer.",
}


async def ask(corpus: Corpus, query: str, limit: int = 50) -> LexicalResult:
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        return await search_terms(session, corpus.ref, query, limit)


async def fill(corpus: Corpus, documents: dict[str, str]) -> dict[int, str]:
    """Title by passage id."""
    found = {}
    for title, content in documents.items():
        found[(await corpus.add(title, content)).passage_ids[0]] = title
    return found


def bm25_by_hand(documents: dict[str, str], query: str) -> dict[str, float]:
    counts = {title: Counter(terms(content)) + Counter(set(terms(title))) for title, content in documents.items()}
    average = sum(c.total() for c in counts.values()) / len(counts)
    scores = {}
    for title, count in counts.items():
        score = 0.0
        for term in set(terms(query)):
            df = sum(term in other for other in counts.values())
            idf = math.log(1 + (len(counts) - df + 0.5) / (df + 0.5))
            tf = count[term]
            score += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * count.total() / average))
        if score:
            scores[title] = score
    return scores


@pytest.mark.parametrize("query", ["ships in the bay", "keeper of the lamp", "Orchard apples", "ships ships coal"])
async def test_scores_are_those_of_the_formula(corpus: Corpus, query: str) -> None:
    titles = await fill(corpus, PLACES)
    result = await ask(corpus, query)
    expected = bm25_by_hand(PLACES, query)
    assert {titles[hit.passage_id]: hit.score for hit in result.hits} == pytest.approx(expected)
    assert [hit.score for hit in result.hits] == pytest.approx(sorted(expected.values(), reverse=True))
    assert result.corpus_passages == len(PLACES)


async def test_coverage_tells_how_much_of_the_question_the_best_passage_holds(corpus: Corpus) -> None:
    await fill(corpus, PLACES)
    assert (await ask(corpus, "keeper lamp tower")).coverage == pytest.approx(1)
    assert (await ask(corpus, "keeper Königsberg Straßenbahn Fahrplan")).coverage < 0.25
    assert (await ask(corpus, "Königsberg")).coverage == 0


@pytest.mark.parametrize("query", ["", "?", "the of and", "的"])
async def test_a_question_without_terms_finds_nothing_but_knows_the_corpus(corpus: Corpus, query: str) -> None:
    await fill(corpus, PLACES)
    result = await ask(corpus, query)
    assert result.hits == ()
    assert result.corpus_passages == len(PLACES)


async def test_rare_terms_are_read_first_and_a_common_one_only_if_there_is_no_other(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "POSTING_BUDGET", 3)
    documents = {f"Note {n}": f"report number {n}" for n in range(6)}
    titles = await fill(corpus, documents | {"Odd": "report on wombats"})
    found = await ask(corpus, "report wombats")
    assert [titles[hit.passage_id] for hit in found.hits] == ["Odd"]
    assert found.idf["report"] < found.idf["wombats"]
    assert len((await ask(corpus, "report")).hits) == len(titles)


async def test_untrusted_passages_do_not_crowd_out_trusted_ones(corpus: Corpus) -> None:
    for number in range(30):
        await corpus.add(f"Draft {number}", "wombats wombats", state="failed")
    titles = await fill(corpus, {"Kept": "wombats and a great many other animals of the southern forests"})
    assert [titles[hit.passage_id] for hit in (await ask(corpus, "wombats", 5)).hits] == ["Kept"]


async def test_headings_and_title_count_for_the_passages_under_them() -> None:
    counted = count_terms("Annual report", ("Fleet", "Vessels"), tokens("Two were sold."))
    assert counted.counts["fleet"] == counted.counts["vessels"] == counted.counts["report"] == 1
    assert counted.length == sum(counted.counts.values()) == len(counted.keys)


async def test_another_tenant_reads_nothing_even_by_the_number_of_the_workspace(
    corpus: Corpus, other_corpus: Corpus
) -> None:
    await fill(corpus, PLACES)
    thief = replace(other_corpus.ref, number=corpus.ref.number)
    async with other_corpus.database.tenant(thief.tenant_id) as session:
        result = await search_terms(session, thief, "ships in the bay", 10)
        rows = await session.scalar(
            text("SELECT count(*) FROM term_postings WHERE workspace = :number"), {"number": thief.number}
        )
    assert (result.hits, rows) == ((), 0)


async def test_another_tenant_cannot_write_under_the_number_of_the_workspace(
    corpus: Corpus, other_corpus: Corpus
) -> None:
    thief = replace(other_corpus.ref, number=corpus.ref.number)
    with pytest.raises(Exception, match="row-level security"):
        async with other_corpus.database.tenant(thief.tenant_id) as session:
            await postings.write_postings(session, thief, {1: count_terms("", (), tokens("planted words"))})
