"""What is told of themes and of the map they are from: labels, concepts, counts, notices."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from app.retrieval.theme_contract import Notice, ThemeConcept, ThemeEvidence, ThemeMapState, ThemeRank
from app.retrieval.themes.labels import SHOWN_TERMS
from app.retrieval.themes.levels import UsableTree
from app.retrieval.themes.reading_store import (
    ConceptRow,
    Usable,
    count_documents,
    load_concepts,
)
from app.retrieval.themes.tree import LeafCount, MapRow, ThemeNode

CONCEPTS_SHOWN: Final = 12
EMPTY_REASONS: Final[Mapping[str, str]] = {
    "too_few_passages": "The workspace has too few passages to tell themes apart.",
    "too_few_concepts": "The passages of the workspace share too few concepts to tell themes apart.",
}
NO_MAP: Final = (
    "There is no map of themes yet: it is made in the background when enough of the workspace has changed, or when"
    " POST …/themes/refresh asks for it."
)


@dataclass(frozen=True)
class Described:
    """What of a theme may be told now."""

    label: str
    concepts: tuple[ThemeConcept, ...]
    passages: int
    documents: int
    placed: int

    def evidence(self, node: ThemeNode, rank: ThemeRank, passage_ids: tuple[int, ...] = ()) -> ThemeEvidence:
        return ThemeEvidence(
            id=node.id,
            level=node.level,
            parent_id=node.parent_id,
            label=self.label,
            concepts=self.concepts,
            passages=self.passages,
            documents=self.documents,
            placed=self.placed,
            importance=node.parts,
            rank=rank,
            passage_ids=passage_ids,
        )


async def describe(
    usable: Usable,
    counts: Mapping[UUID, LeafCount],
    leaves: Mapping[UUID, Sequence[UUID]],
    asked: Set[int] = frozenset(),
) -> dict[UUID, Described]:
    """Per theme, of which the leaves are given; `asked` are the keys of a question's concepts."""
    if not leaves:
        return {}
    documents = await count_documents(usable, leaves)
    concepts = await load_concepts(usable, leaves)
    described = {}
    for theme_id, inside in leaves.items():
        found = concepts.get(theme_id, [])
        here = [counts[leaf] for leaf in inside if leaf in counts]
        described[theme_id] = Described(
            label=label_of(found),
            concepts=tuple(_concept(row, asked) for row in found[:CONCEPTS_SHOWN]),
            passages=sum(count.passages for count in here),
            documents=documents.get(theme_id, 0),
            placed=sum(count.placed for count in here),
        )
    return described


def label_of(concepts: Sequence[ConceptRow]) -> str:
    """The first terms of the label that a passage still holds; where none does, the most telling concepts."""
    terms = sorted((row for row in concepts if row.label_rank is not None), key=lambda row: row.label_rank or 0)
    return ", ".join(row.label for row in (terms or concepts)[:SHOWN_TERMS])


def map_state(tree: UsableTree, corpus_version: int | None) -> ThemeMapState:
    """As it stands beside the corpus; shares are of passages that may be used."""
    row = tree.row
    passages = sum(count.passages for count in tree.counts.values())
    placed = sum(count.placed for count in tree.counts.values())
    return ThemeMapState(
        id=row.id,
        built_at=row.finished_at or datetime.fromtimestamp(0, UTC),
        corpus_version=row.corpus_version,
        passages=passages,
        documents=tree.documents.documents,
        documents_outside=tree.documents.outside,
        placed_share=round(placed / passages, 4) if passages else 0.0,
        sampled_share=round(row.sampled_share, 4),
        levels=tree.tree.levels,
        is_stale=corpus_version is not None and corpus_version != row.corpus_version,
    )


def notices_of(row: MapRow, state: ThemeMapState) -> list[Notice]:
    """What a reader of themes should know of their map."""
    notices = []
    if state.placed_share:
        share = f"{100 * state.placed_share:.1f} %"
        notices.append(
            Notice(
                "themes_stale",
                f"{share} of the passages came after the map was made, and were put beside what they resemble.",
                {"placed_share": state.placed_share},
            )
        )
    if state.documents_outside:
        notices.append(
            Notice(
                "documents_outside",
                f"{state.documents_outside} of {state.documents} documents are in no theme: they share too few concepts with"
                " others, or came after the map was made and resemble none. GET …/themes/outside lists them.",
                {"documents_outside": state.documents_outside, "documents": state.documents},
            )
        )
    if row.is_sampled:
        notices.append(
            Notice(
                "themes_sampled",
                f"The map was made from a sample of {row.used_passages} of {row.passages} passages.",
                {"sampled_share": state.sampled_share},
            )
        )
    return notices


def no_map(row: MapRow | None) -> Notice:
    """Why there is nothing to answer from, and when there will be."""
    if row is None:
        return Notice("themes_not_built", NO_MAP, {"state": "none"})
    if not row.is_ready:
        return Notice("themes_not_built", "The first map of themes is being made now.", {"state": row.state})
    reason = row.empty_reason or "too_few_concepts"
    return Notice(
        "themes_empty",
        EMPTY_REASONS.get(reason, EMPTY_REASONS["too_few_concepts"]),
        {"reason": reason, "passages": row.passages},
    )


def _concept(row: ConceptRow, asked: Set[int]) -> ThemeConcept:
    return ThemeConcept(str(row.key), row.label, row.kind, row.passages, round(row.lift, 3), row.key in asked)
