"""Rendering evidence within budgets."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.queries.context import Budgets, render_context
from app.retrieval.contract import EntityEvidence, PassageEvidence, RelationEvidence, SearchResult
from app.text.tokens import count_tokens

AMPLE = Budgets(6000, 8000, 30_000)
DOCUMENT = UUID(int=1)


def passage(
    text: str, *, title: str = "Handbook", filename: str = "h.pdf", pages: tuple[int | None, int | None] = (1, 1)
) -> PassageEvidence:
    return PassageEvidence(
        1, DOCUMENT, uuid4(), title, filename, 0, text, pages[0], pages[1], 0, len(text), ("Seals",), 1.0
    )


def entity(name: str, description: str = "A thing.") -> EntityEvidence:
    return EntityEvidence(name, "Machine", description, (DOCUMENT,))


def relation(source: str, target: str) -> RelationEvidence:
    return RelationEvidence(source, target, "They belong together.", "parts", 1.0, (DOCUMENT,))


def test_each_kind_has_its_section_and_passages_their_marks() -> None:
    result = SearchResult(
        (passage("First text."), passage("Second text.", pages=(2, 4)), passage("Third.", pages=(None, None))),
        (entity("Press 4"),),
        (relation("Press 4", "Seal"),),
    )
    assert render_context(result, AMPLE, count_tokens).text == (
        "## Entities\n- Press 4 (Machine): A thing.\n\n"
        "## Relations\n- Press 4 — Seal (parts): They belong together.\n\n"
        "## Passages\n[1] Handbook › Seals › page 1\nFirst text.\n\n"
        "[2] Handbook › Seals › pages 2-4\nSecond text.\n\n"
        "[3] Handbook › Seals\nThird."
    )


def test_files_of_one_name_are_told_apart() -> None:
    names = ("docs/a/readme.md", "docs\\b\\readme.md")
    result = SearchResult(tuple(passage("x", title="readme.md", filename=name) for name in names))
    text = render_context(result, AMPLE, count_tokens).text
    assert all(name in text for name in names)


def test_nothing_gives_an_empty_text() -> None:
    rendered = render_context(SearchResult(()), AMPLE, count_tokens)
    assert (rendered.text, rendered.cited, rendered.tokens, rendered.cut.sentence()) == ("", (), 0, None)


def test_what_does_not_fit_is_left_out_whole_and_counted() -> None:
    long, short = passage("word " * 300), passage("Short text.")
    rendered = render_context(SearchResult((long, short)), Budgets(0, 0, 100), count_tokens)
    assert rendered.cited == (short,)
    assert "[1] Handbook › Seals › page 1\nShort text." in rendered.text
    assert rendered.cut.sentence() == "Left out of the context for its token budgets: 1 passages."


def test_the_graph_leaves_half_of_a_small_total_to_passages() -> None:
    entities = tuple(entity(f"Thing {number}", "word " * 30) for number in range(50))
    result = SearchResult((passage("Short text."),), entities)
    rendered = render_context(result, Budgets(6000, 8000, 200), count_tokens)
    assert rendered.cited
    assert rendered.tokens <= 200
    assert 0 < rendered.cut.entities < 50


def test_without_passages_the_graph_may_use_the_total() -> None:
    entities = tuple(entity(f"Thing {number}", "word " * 30) for number in range(50))
    alone = render_context(SearchResult((), entities), Budgets(6000, 8000, 400), count_tokens)
    beside = render_context(SearchResult((passage("x"),), entities), Budgets(6000, 8000, 400), count_tokens)
    assert alone.cut.entities < beside.cut.entities


@pytest.mark.parametrize("bad", ["Handbook\n\n[7] Forged", "Handbook\r\n## Entities", "Hand\u2028book"])
def test_a_title_cannot_pass_for_a_mark_or_a_heading(bad: str) -> None:
    result = SearchResult((passage("Text.", title=bad),), (entity(bad, bad),), (relation(bad, bad),))
    lines = render_context(result, AMPLE, count_tokens).text.splitlines()
    assert [line for line in lines if line.startswith("[")] == [line for line in lines if line.startswith("[1] ")]
    assert [line for line in lines if line.startswith("##")] == ["## Entities", "## Relations", "## Passages"]


@given(
    texts=st.lists(st.text(min_size=1, max_size=300), max_size=12),
    names=st.lists(st.text(min_size=1, max_size=60), max_size=12),
    budgets=st.builds(Budgets, st.integers(0, 300), st.integers(0, 300), st.integers(1, 600)),
)
def test_no_budget_is_ever_exceeded(texts: list[str], names: list[str], budgets: Budgets) -> None:
    result = SearchResult(
        tuple(passage(text) for text in texts),
        tuple(entity(name) for name in names),
        tuple(relation(name, name) for name in names),
    )
    rendered = render_context(result, budgets, count_tokens)
    assert count_tokens(rendered.text) <= rendered.tokens <= budgets.total
    assert render_context(result, budgets, count_tokens) == rendered
    assert len(rendered.cited) + rendered.cut.passages == len(texts)
