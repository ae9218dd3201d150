"""Renders themes as a context within a token budget: each under its label, with its concepts and cited passages. Pure.

The themes come first, for they are the answer; passages are then added in turns, one of each theme, so that a small budget
shows a little of all rather than all of one.
"""

from collections.abc import Iterator, Sequence

from app.domain.queries.context import Budgets, Count, Cut, RenderedContext, one_line, passage_block, render_context
from app.retrieval.contract import THEME_MODES, PassageEvidence, SearchResult
from app.retrieval.theme_contract import ThemeEvidence


def render(mode: str, result: SearchResult, budgets: Budgets, count: Count) -> RenderedContext:
    """The evidence of any mode as its context."""
    if mode in THEME_MODES:
        return render_themes(result, budgets.total, count)
    return render_context(result, budgets, count)


def render_themes(result: SearchResult, budget: int, count: Count) -> RenderedContext:
    """Themes in their order, each passage whole or not at all; the same result and budget give the same text."""
    found = {passage.passage_id: passage for passage in result.passages}
    left = float(budget)
    shown: list[ThemeEvidence] = []
    for number, theme in enumerate(result.themes.themes, start=1):
        cost = _cost(theme_heading(theme, number), count)
        if cost <= left:
            left -= cost
            shown.append(theme)
    kept: set[int] = set()
    for passage in _in_turns(shown, found):
        # With the longest mark that there can be: the marks are given when it is known what fits.
        cost = _cost(passage_block(passage, len(found)), count)
        if cost <= left:
            left -= cost
            kept.add(passage.passage_id)
    blocks, cited = _blocks(result.themes.themes, shown, kept, found)
    return RenderedContext(
        text="\n\n".join(blocks),
        cited=tuple(cited),
        tokens=sum(_cost(block, count) for block in blocks),
        cut=Cut(passages=len(result.passages) - len(cited), themes=len(result.themes.themes) - len(shown)),
    )


def theme_heading(theme: ThemeEvidence, number: int) -> str:
    """The label, how much of the corpus it is, and its concepts, as two lines."""
    passages = f"{theme.passages} passage{'' if theme.passages == 1 else 's'}"
    documents = f"{theme.documents} document{'' if theme.documents == 1 else 's'}"
    lines = [f"## Theme {number}: {one_line(theme.label)} ({passages} in {documents})"]
    if theme.concepts:
        lines.append(f"Concepts: {', '.join(one_line(concept.label) for concept in theme.concepts)}")
    return "\n".join(lines)


def _cost(block: str, count: Count) -> int:
    return count(f"{block}\n\n")


def _in_turns(themes: Sequence[ThemeEvidence], found: dict[int, PassageEvidence]) -> Iterator[PassageEvidence]:
    """The first passage of each theme, then the second of each …"""
    for turn in range(max((len(theme.passage_ids) for theme in themes), default=0)):
        for theme in themes:
            for passage_id in theme.passage_ids[turn : turn + 1]:
                if passage_id in found:
                    yield found[passage_id]


def _blocks(
    themes: Sequence[ThemeEvidence], shown: Sequence[ThemeEvidence], kept: set[int], found: dict[int, PassageEvidence]
) -> tuple[list[str], list[PassageEvidence]]:
    blocks: list[str] = []
    cited: list[PassageEvidence] = []
    for number, theme in enumerate(themes, start=1):
        if theme not in shown:
            continue
        blocks.append(theme_heading(theme, number))
        for passage_id in theme.passage_ids:
            if passage_id in kept:
                cited.append(found[passage_id])
                blocks.append(passage_block(found[passage_id], len(cited)))
    return blocks, cited
