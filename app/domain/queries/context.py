"""Renders evidence as a context within token budgets. Pure: the same evidence and budgets give the same text.

A piece of evidence is shown whole or not at all. Titles, names and descriptions become single lines, so that none can
pass for a heading or a citation mark of the context itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.retrieval.contract import EntityEvidence, PassageEvidence, RelationEvidence, SearchResult

Evidence = TypeVar("Evidence")
Count = Callable[[str], int]


@dataclass(frozen=True)
class Budgets:
    """Tokens at most, headings and citation marks included."""

    entities: int
    relations: int
    total: int


@dataclass(frozen=True)
class Cut:
    """How many pieces of evidence did not fit."""

    passages: int = 0
    entities: int = 0
    relations: int = 0
    themes: int = 0

    def sentence(self) -> str | None:
        """None if everything fitted."""
        parts = [
            f"{number} {name}"
            for number, name in (
                (self.passages, "passages"),
                (self.entities, "entities"),
                (self.relations, "relations"),
                (self.themes, "themes"),
            )
            if number
        ]
        return f"Left out of the context for its token budgets: {', '.join(parts)}." if parts else None


@dataclass(frozen=True)
class RenderedContext:
    """The text, the passages that it cites as [1], [2] ... in this order, and what was left out."""

    text: str
    cited: tuple[PassageEvidence, ...]
    tokens: int
    cut: Cut


def render_context(result: SearchResult, budgets: Budgets, count: Count) -> RenderedContext:
    """Entities, relations, then passages with their marks; each kind best first.

    Where there are passages, half of the total is theirs: the graph's descriptions are shortened in proportion.
    """
    room = _graph_room(result, budgets)
    entities = _Section("## Entities", count, budgets.entities * room)
    relations = _Section("## Relations", count, budgets.relations * room)
    shown_entities = entities.fill(result.entities, lambda item, _: entity_line(item))
    shown_relations = relations.fill(result.relations, lambda item, _: relation_line(item))
    passages = _Section("## Passages", count, budgets.total - entities.tokens - relations.tokens)
    cited = passages.fill(result.passages, passage_block)
    sections = [section for section in (entities, relations, passages) if section.blocks]
    return RenderedContext(
        text="\n\n".join(section.text for section in sections),
        cited=tuple(cited),
        tokens=sum(section.tokens for section in sections),
        cut=Cut(
            passages=len(result.passages) - len(cited),
            entities=len(result.entities) - len(shown_entities),
            relations=len(result.relations) - len(shown_relations),
        ),
    )


def entity_line(entity: EntityEvidence) -> str:
    kind = f" ({one_line(entity.type)})" if entity.type else ""
    return f"- {one_line(entity.name)}{kind}: {one_line(entity.description)}"


def relation_line(relation: RelationEvidence) -> str:
    keywords = f" ({one_line(relation.keywords)})" if relation.keywords else ""
    return f"- {one_line(relation.source)} — {one_line(relation.target)}{keywords}: {one_line(relation.description)}"


def passage_block(passage: PassageEvidence, number: int) -> str:
    """The mark, where the passage stands, and its text."""
    place = [_name(passage), *(one_line(heading) for heading in passage.heading_path)]
    if passage.page_start is not None:
        last = passage.page_end
        is_range = last is not None and last != passage.page_start
        place.append(f"pages {passage.page_start}-{last}" if is_range else f"page {passage.page_start}")
    return f"[{number}] {' › '.join(part for part in place if part)}\n{passage.text.strip()}"


def _name(passage: PassageEvidence) -> str:
    """The title; for a document without one of its own the whole file name, whose folders tell it from its namesakes."""
    filename = one_line(passage.filename)
    title = one_line(passage.title)
    return filename if filename.replace("\\", "/").endswith(f"/{title}") else title


def one_line(text: str) -> str:
    return " ".join(text.split())


def _graph_room(result: SearchResult, budgets: Budgets) -> float:
    """The share of their own budgets that entities and relations may use."""
    wanted = budgets.entities * bool(result.entities) + budgets.relations * bool(result.relations)
    allowed = budgets.total / 2 if result.passages else budgets.total
    return min(1.0, allowed / wanted) if wanted else 1.0


class _Section:
    """Blocks under a heading, as many as fit."""

    def __init__(self, heading: str, count: Count, budget: float) -> None:
        self._heading = heading
        self._count = count
        self._budget = budget
        self.blocks: list[str] = []
        self.tokens = 0

    def fill(self, evidence: Sequence[Evidence], block: Callable[[Evidence, int], str]) -> list[Evidence]:
        """Add what fits, best first, and skip what does not; the evidence that was added."""
        added: list[Evidence] = []
        for item in evidence:
            text = block(item, len(added) + 1)
            cost = self._count(f"{text}\n\n") + (0 if added else self._count(f"{self._heading}\n\n"))
            if self.tokens + cost <= self._budget:
                self.blocks.append(text)
                self.tokens += cost
                added.append(item)
        return added

    @property
    def text(self) -> str:
        # Entities and relations are lists, passages are paragraphs.
        separator = "\n" if self.blocks[0].startswith("- ") else "\n\n"
        return f"{self._heading}\n{separator.join(self.blocks)}"
