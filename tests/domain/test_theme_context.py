"""Rendering themes within a token budget."""

import re
from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from app.domain.queries.theme_context import render_themes
from app.retrieval.contract import PassageEvidence, SearchResult
from app.retrieval.theme_contract import Importance, ThemeConcept, ThemeEvidence, ThemeRank, ThemesFound
from app.text.tokens import count_tokens

DOCUMENT = UUID(int=1)
AMPLE = 30_000


def passage(number: int, text: str) -> PassageEvidence:
    return PassageEvidence(
        number, DOCUMENT, DOCUMENT, f"Note {number}", "n.txt", 0, text, None, None, 0, len(text), (), 1.0
    )


def theme(number: int, label: str, *passage_ids: int) -> ThemeEvidence:
    concepts = (ThemeConcept("1", f"{label}\n## X", "name", 1, 1.0), ThemeConcept("2", "seal", "word", 1, 1.0))
    return ThemeEvidence(
        id=UUID(int=number), level=0, parent_id=None, label=label, concepts=concepts, passages=len(passage_ids),
        documents=1, placed=0, importance=Importance(*[0.5] * 6), rank=ThemeRank(1 / number), passage_ids=passage_ids,
    )  # fmt: skip


def found(*texts: str) -> SearchResult:
    """Two themes; passages with odd numbers are of the first one."""
    passages = tuple(passage(number, text) for number, text in enumerate(texts, start=1))
    odd, even = (tuple(p.passage_id for p in passages if p.passage_id % 2 == rest) for rest in (1, 0))
    return SearchResult(passages, themes=ThemesFound((theme(1, "Press\n4", *odd), theme(2, "Ice", *even)), 0))


def test_each_theme_stands_above_its_passages() -> None:
    rendered = render_themes(found("First.", "Second.", "Third."), AMPLE, count_tokens)
    assert rendered.text == (
        "## Theme 1: Press 4 (2 passages in 1 document)\nConcepts: Press 4 ## X, seal\n\n"
        "[1] Note 1\nFirst.\n\n[2] Note 3\nThird.\n\n"
        "## Theme 2: Ice (1 passage in 1 document)\nConcepts: Ice ## X, seal\n\n"
        "[3] Note 2\nSecond."
    )
    assert [cited.passage_id for cited in rendered.cited] == [1, 3, 2]
    assert rendered.cut.sentence() is None


def test_a_small_budget_shows_some_of_each_theme_before_more_of_one() -> None:
    result = found("One. " * 12, "Two. " * 12, "Three. " * 12)
    both = count_tokens(render_themes(replace(result, passages=()), AMPLE, count_tokens).text)
    rendered = render_themes(result, both + 85, count_tokens)
    assert [cited.passage_id for cited in rendered.cited] == [1, 2]
    assert rendered.cut.sentence() == "Left out of the context for its token budgets: 1 passages."
    none = render_themes(result, 10, count_tokens)
    assert (none.text, none.cut.themes) == ("", 2)


@given(st.lists(st.text(min_size=1, max_size=200), min_size=1, max_size=12), st.integers(0, 400))
def test_no_budget_is_passed_and_no_passage_cut(texts: list[str], budget: int) -> None:
    result = found(*texts)
    rendered = render_themes(result, budget, count_tokens)
    assert rendered.tokens <= budget
    assert len(rendered.cited) + rendered.cut.passages == len(texts)
    for number, cited in enumerate(rendered.cited, start=1):
        assert f"[{number}] Note {cited.passage_id}\n{cited.text.strip()}" in rendered.text
    assert render_themes(result, budget, count_tokens) == rendered
    assert len(re.findall(r"(?m)^## Theme \d: (?:Press 4|Ice) \(", rendered.text)) == 2 - rendered.cut.themes
