"""From the concepts of passages to a map of themes. Pure, and run in a process of its own: it takes seconds of CPU."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.retrieval.lazy.centrality import pagerank_of
from app.retrieval.lazy.selection import is_prominent, is_title
from app.retrieval.themes.communities import Tree, find_paths, grow
from app.retrieval.themes.graph import (
    Edges,
    Flags,
    Floats,
    Ints,
    Mentions,
    Vocabulary,
    find_edges,
    kinds_of,
    read_vocabulary,
)
from app.retrieval.themes.importance import Importance, weigh
from app.retrieval.themes.parameters import ThemeParameters
from app.retrieval.themes.placement import place_in_themes, weights_of

UPPER_CONCEPTS = 50
"""Concepts kept of a theme that has children; a leaf keeps all of its own beside as many others."""


@dataclass(frozen=True)
class DraftConcept:
    """A concept of a theme. `titles` and `prominent` count the theme's passages whose title it is, and in whose title or
    first sentence it stands; `weight` is None where it is no member of the theme's own community."""

    key: int
    kind: int
    df: int
    corpus_df: int
    lift: float
    titles: int
    prominent: int
    weight: float | None
    degree: int | None = None  # of a member, in the whole graph; so is the PageRank
    pagerank: float | None = None


@dataclass(frozen=True)
class DraftTheme:
    """A theme before it has a name; `passages` are places among the mentions' passages. Concepts come best lift first."""

    level: int
    last_level: int
    parent: int | None  # a place among the themes, before this one
    first_leaf: int
    last_leaf: int
    passages: Ints
    documents: int
    importance: Importance
    concepts: Sequence[DraftConcept]

    @property
    def is_leaf(self) -> bool:
        return self.first_leaf == self.last_leaf


@dataclass(frozen=True)
class DraftMap:
    """All themes, parents first, and the leaf and weight of each passage (-1: none)."""

    levels: int
    base_level: int
    leaves: int
    concepts: int
    edges: int
    themes: Sequence[DraftTheme]
    passage_leaves: Ints
    passage_weights: Floats


def build(mentions: Mentions, parameters: ThemeParameters) -> DraftMap:
    """The map of these passages; one without themes if nothing ties any two concepts together."""
    vocabulary = read_vocabulary(mentions, parameters)
    edges = find_edges(vocabulary, mentions.passages, parameters)
    paths = find_paths(edges, parameters)
    known = sorted(set(paths.values()))
    numbers = {path: number for number, path in enumerate(known)}
    leaves = np.full(len(vocabulary.keys), -1, dtype=np.int64)
    for concept, path in paths.items():
        leaves[concept] = numbers[path]
    chosen, weights, leaves = place_in_themes(vocabulary, leaves, mentions.passages)
    kept = np.unique(leaves[leaves >= 0])
    tree = grow([known[number] for number in kept.tolist()])
    renumbered = np.full(len(known) + 1, -1, dtype=np.int64)  # the last for "none", which is -1
    for number in kept.tolist():
        renumbered[number] = tree.leaf_of[known[number]]
    return _draft(mentions, vocabulary, edges, tree, renumbered[chosen], weights, renumbered[leaves], parameters)


def _draft(
    mentions: Mentions,
    vocabulary: Vocabulary,
    edges: Edges,
    tree: Tree,
    chosen: Ints,
    weights: Floats,
    leaves: Ints,
    parameters: ThemeParameters,
) -> DraftMap:
    drawing = _Drawing(mentions, vocabulary, edges, chosen, leaves, parameters)
    themes = [
        drawing.theme(node.level, node.last_level, node.parent, node.first_leaf, node.last_leaf) for node in tree.nodes
    ]
    return DraftMap(
        levels=tree.levels,
        base_level=tree.base_level,
        leaves=len(tree.leaf_of),
        concepts=int((leaves >= 0).sum()),
        edges=len(edges.weights),
        themes=themes,
        passage_leaves=chosen,
        passage_weights=weights,
    )


class _Drawing:
    """Mentions ordered by the leaf of their passage, so that those of a theme stand together."""

    def __init__(
        self,
        mentions: Mentions,
        vocabulary: Vocabulary,
        edges: Edges,
        chosen: Ints,
        leaves: Ints,
        parameters: ThemeParameters,
    ) -> None:
        concepts = len(vocabulary.keys)
        self._degrees = np.bincount(np.r_[edges.first, edges.second], minlength=concepts)
        self._ranks = pagerank_of(concepts, edges.first, edges.second, edges.weights)
        self._parameters = parameters
        self._mentions = mentions
        self._vocabulary = vocabulary
        self._leaves = leaves
        self._placed = int((chosen >= 0).sum())
        self._order = np.argsort(chosen, kind="stable")
        self._passage_leaves = chosen[self._order]
        of_mentions = chosen[vocabulary.owners]
        order = np.argsort(of_mentions, kind="stable")
        self._mention_leaves = of_mentions[order]
        self._concepts = vocabulary.concepts[order]
        flags = vocabulary.flags[order].astype(np.int64)
        self._kinds = kinds_of(flags)
        self._titles = np.array([is_title(flag) for flag in flags.tolist()], dtype=bool)
        self._prominent = np.array([is_prominent(flag) for flag in flags.tolist()], dtype=bool)
        # Which passages each community's concepts touch, whichever theme these are in.
        self._counted = vocabulary.in_window[vocabulary.concepts]
        self._sizes = np.bincount(vocabulary.owners[self._counted], minlength=mentions.passages)
        self._concept_leaves = leaves[vocabulary.concepts]
        self._by_leaf = np.argsort(self._concept_leaves, kind="stable")
        self._sorted_leaves = self._concept_leaves[self._by_leaf]

    def theme(self, level: int, last_level: int, parent: int | None, first: int, last: int) -> DraftTheme:
        begin, end = np.searchsorted(self._passage_leaves, [first, last + 1])
        passages = self._order[begin:end]
        start, stop = np.searchsorted(self._mention_leaves, [first, last + 1])
        concepts, places, df = np.unique(self._concepts[start:stop], return_inverse=True, return_counts=True)
        size = len(concepts)
        is_own = (self._leaves[concepts] >= first) & (self._leaves[concepts] <= last)
        importance = self._importance(len(passages), first, last, concepts, df, is_own)
        titles = np.bincount(places[self._titles[start:stop]], minlength=size)
        prominent = np.bincount(places[self._prominent[start:stop]], minlength=size)
        # A concept is a name where any passage writes it as one.
        kinds = np.full(size, 9)
        np.minimum.at(kinds, places, self._kinds[start:stop])
        corpus_df = self._vocabulary.df[concepts]
        lifts = (df / corpus_df) ** 2 * np.log1p(df)
        order = np.lexsort((self._vocabulary.keys[concepts], -lifts))
        kept = order[:UPPER_CONCEPTS]
        if first == last:
            others = order[UPPER_CONCEPTS:]
            kept = np.r_[kept, others[is_own[others]]]
        weights = weights_of(corpus_df)
        found = [
            DraftConcept(
                key=int(self._vocabulary.keys[concepts[place]]),
                kind=int(kinds[place]),
                df=int(df[place]),
                corpus_df=int(corpus_df[place]),
                lift=float(lifts[place]),
                titles=int(titles[place]),
                prominent=int(prominent[place]),
                weight=float(weights[place]) if first == last and is_own[place] else None,
                degree=int(self._degrees[concepts[place]]) if first == last and is_own[place] else None,
                pagerank=float(self._ranks[concepts[place]]) if first == last and is_own[place] else None,
            )
            for place in kept.tolist()
        ]
        documents = len(np.unique(self._mentions.documents[passages]))
        return DraftTheme(level, last_level, parent, first, last, passages, documents, importance, found)

    def _importance(self, passages: int, first: int, last: int, concepts: Ints, df: Ints, is_own: Flags) -> Importance:
        low, high = np.searchsorted(self._sorted_leaves, [first, last + 1])
        touched = np.unique(self._vocabulary.owners[self._by_leaf[low:high]])
        return weigh(
            passages=passages,
            of_passages=self._placed,
            own_mentions=int(high - low),
            touched_mentions=int(self._sizes[touched].sum()),
            different=int(self._vocabulary.in_window[concepts].sum()),
            own_df=df[is_own],
            parameters=self._parameters,
        )
