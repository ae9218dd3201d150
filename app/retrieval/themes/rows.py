"""A map as rows to write, made where it is built: in the process beside, so that the event loop only passes texts on."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from app.retrieval.themes.building import DraftConcept, DraftMap, build
from app.retrieval.themes.graph import Mentions
from app.retrieval.themes.inheritance import Ancestry, inherit_ids
from app.retrieval.themes.labels import Unnamed, label_all, unnamed
from app.retrieval.themes.parameters import ThemeParameters

_ROWS_AT_ONCE = 2000

Rows = list[str]
"""JSON arrays of objects, some thousand objects each."""


@dataclass(frozen=True)
class BuiltMap:
    """Rows of the tables by name, and what is left to name: `concepts` lacks those that labels are chosen from."""

    levels: int
    base_level: int
    leaves: int
    assigned: int
    concept_count: int
    edge_count: int
    themes: Rows
    concepts: Rows
    passages: Rows
    ids: list[UUID]
    unnamed: list[Unnamed]

    @property
    def keys(self) -> set[int]:
        """The concepts whose surfaces have to be known."""
        return {concept.key for theme in self.unnamed for concept in theme.concepts}


def build_rows(
    mentions: Mentions,
    versions: Sequence[UUID],
    documents: Sequence[UUID],
    before: Ancestry | None,
    parameters: ThemeParameters,
) -> BuiltMap:
    """Build the map; `versions` and `documents` are what the mentions' passages name by place."""
    draft = build(mentions, parameters)
    ranges = [(theme.level, theme.first_leaf, theme.last_leaf) for theme in draft.themes]
    ids = inherit_ids(ranges, mentions.passage_ids, draft.passage_leaves, before)
    nameless = [unnamed(theme) for theme in draft.themes]
    return BuiltMap(
        levels=draft.levels,
        base_level=draft.base_level,
        leaves=draft.leaves,
        assigned=int((draft.passage_leaves >= 0).sum()),
        concept_count=draft.concepts,
        edge_count=draft.edges,
        themes=_packed(_theme_rows(draft, ids)),
        concepts=_packed(_unlabelled_rows(draft, ids, nameless)),
        passages=_packed(_passage_rows(draft, ids, mentions, versions, documents)),
        ids=ids,
        unnamed=nameless,
    )


def name_rows(themes: Sequence[Unnamed], ids: Sequence[UUID], surfaces: Mapping[int, str]) -> Rows:
    """The rows of the concepts that `BuiltMap.concepts` lacks, with surfaces and places in labels."""
    return _packed(_labelled_rows(themes, ids, label_all(themes, surfaces), surfaces))


def _theme_rows(draft: DraftMap, ids: Sequence[UUID]) -> Iterable[dict[str, Any]]:
    order = sorted(range(len(ids)), key=lambda place: -draft.themes[place].importance.importance)
    numbers: dict[int, int] = {}
    seen: dict[int, int] = {}
    for place in order:
        level = draft.themes[place].level
        numbers[place] = seen[level] = seen.get(level, -1) + 1
    for place, theme in enumerate(draft.themes):
        yield {
            "id": str(ids[place]),
            "level": theme.level,
            "last_level": theme.last_level,
            "number": numbers[place],
            "parent_id": None if theme.parent is None else str(ids[theme.parent]),
            "first_leaf": theme.first_leaf,
            "last_leaf": theme.last_leaf,
            "passages": len(theme.passages),
            "documents": theme.documents,
            **asdict(theme.importance),
        }


def _unlabelled_rows(draft: DraftMap, ids: Sequence[UUID], nameless: Sequence[Unnamed]) -> Iterable[dict[str, Any]]:
    for place, theme in enumerate(draft.themes):
        labelled = {concept.key for concept in nameless[place].concepts}
        for rank, concept in enumerate(theme.concepts):
            if concept.key not in labelled:
                yield _concept_row(ids[place], rank, concept)


def _labelled_rows(
    themes: Sequence[Unnamed],
    ids: Sequence[UUID],
    labels: Sequence[Sequence[Any]],
    surfaces: Mapping[int, str],
) -> Iterable[dict[str, Any]]:
    for place, theme in enumerate(themes):
        ranks = {term.key: rank for rank, term in enumerate(labels[place])}
        for rank, concept in theme.ranked:
            row = _concept_row(ids[place], rank, concept)
            yield row | {"surface": surfaces.get(concept.key), "label_rank": ranks.get(concept.key)}


def _concept_row(theme_id: UUID, rank: int, concept: DraftConcept) -> dict[str, Any]:
    return {
        "theme_id": str(theme_id),
        "key": concept.key,
        "kind": concept.kind,
        "df": concept.df,
        "corpus_df": concept.corpus_df,
        "lift": concept.lift,
        "rank": rank,
        "weight": concept.weight,
        "degree": concept.degree,
        "pagerank": concept.pagerank,
    }


def _passage_rows(
    draft: DraftMap, ids: Sequence[UUID], mentions: Mentions, versions: Sequence[UUID], documents: Sequence[UUID]
) -> Iterable[dict[str, Any]]:
    of_leaf = {theme.first_leaf: str(ids[place]) for place, theme in enumerate(draft.themes) if theme.is_leaf}
    columns = (mentions.passage_ids, draft.passage_leaves, mentions.versions, mentions.documents, draft.passage_weights)
    for passage_id, leaf, version, document, weight in zip(*(column.tolist() for column in columns), strict=True):
        if leaf >= 0:
            yield {
                "passage_id": passage_id,
                "theme_id": of_leaf[leaf],
                "version_id": str(versions[version]),
                "document_id": str(documents[document]),
                "weight": weight,
            }


def _packed(rows: Iterable[dict[str, Any]]) -> Rows:
    found = list(rows)
    return [json.dumps(found[start : start + _ROWS_AT_ONCE]) for start in range(0, len(found), _ROWS_AT_ONCE)]
