"""The concept graph: which concepts stand in the same passages more often than by chance. Pure."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from app.retrieval.lazy.selection import kind_of
from app.retrieval.themes.parameters import ThemeParameters
from app.text.concepts.extraction import ConceptKind

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Mentions:
    """The concepts of passages, one after the other: those of passage i are `keys[offsets[i]:offsets[i + 1]]`."""

    passage_ids: Ints
    versions: npt.NDArray[np.int32]  # as places in a list that the caller keeps; so are the documents
    documents: npt.NDArray[np.int32]
    offsets: Ints
    keys: Ints
    flags: Ints

    @property
    def passages(self) -> int:
        return len(self.passage_ids)

    @property
    def owners(self) -> Ints:
        """The passage of each mention, by its place."""
        return np.repeat(np.arange(self.passages), np.diff(self.offsets))


@dataclass(frozen=True)
class Vocabulary:
    """The concepts of all passages but for numbers, as `keys[i]` in `df[i]` of them, and the mentions of each as places
    in it: `concepts[j]` in passage `owners[j]`, ordered by passage. `in_window` are those that may tell themes apart."""

    keys: Ints
    df: Ints
    in_window: Flags
    owners: Ints
    concepts: Ints
    flags: Ints


@dataclass(frozen=True)
class Edges:
    """Undirected, each once: `first[i] < second[i]` are places in the vocabulary."""

    first: Ints
    second: Ints
    weights: Floats


def read_vocabulary(mentions: Mentions, parameters: ThemeParameters) -> Vocabulary:
    """Numbers are left out: they tie together what has nothing else in common."""
    counts = kinds_of(mentions.flags) != int(ConceptKind.NUMBER)
    keys, concepts, df = np.unique(mentions.keys[counts], return_inverse=True, return_counts=True)
    in_window = (df >= parameters.min_df) & (df <= parameters.max_df(mentions.passages))
    return Vocabulary(keys, df, in_window, mentions.owners[counts], concepts, mentions.flags[counts])


def kinds_of(flags: Ints) -> Ints:
    """`kind_of` for many."""
    return np.array([kind_of(flag) for flag in flags.tolist()], dtype=np.int64)


def find_edges(vocabulary: Vocabulary, passages: int, parameters: ThemeParameters) -> Edges:
    """Each passage pairs up its rarest concepts; an edge weighs NPMI (Bouma 2009) times the root of how many passages
    hold both, and is there only where that is positive."""
    size = len(vocabulary.keys)
    codes = _pair_codes(vocabulary, parameters.rarest)
    if not len(codes):
        return Edges(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    pairs, together = np.unique(codes, return_counts=True)
    first, second = pairs // size, pairs % size
    share = together / passages
    expected = vocabulary.df[first] * (vocabulary.df[second] / passages) / passages
    # A pair that stands in every passage has no information, and NPMI its limit.
    npmi = np.where(share < 1, np.log(share / expected) / -np.log(np.minimum(share, 1 - 1e-12)), 1.0)
    weights = npmi * np.sqrt(together)
    tie = weights > 0
    return Edges(first[tie], second[tie], weights[tie])


def _pair_codes(vocabulary: Vocabulary, rarest: int) -> Ints:
    """`first * size + second` for every pair of every passage."""
    held = vocabulary.in_window[vocabulary.concepts]
    owners, concepts = vocabulary.owners[held], vocabulary.concepts[held]
    # Ties go by key, so that the order of uploads does not matter.
    order = np.lexsort((concepts, vocabulary.df[concepts], owners))
    owners, concepts = owners[order], concepts[order]
    starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]]) if len(owners) else np.empty(0, np.int64)
    places = np.arange(len(owners)) - np.repeat(starts, np.diff(np.r_[starts, len(owners)]))
    kept = places < rarest
    owners, concepts, places = owners[kept], concepts[kept], places[kept]
    table = np.full((len(starts), rarest), -1, dtype=np.int64)
    rows = np.cumsum(np.r_[False, owners[1:] != owners[:-1]]) if len(owners) else np.empty(0, np.int64)
    table[rows, places] = concepts
    found: list[Any] = []
    for left in range(rarest):
        for right in range(left + 1, rarest):
            both = table[:, right] >= 0
            low = np.minimum(table[both, left], table[both, right])
            high = np.maximum(table[both, left], table[both, right])
            found.append(low * len(vocabulary.keys) + high)
    return np.concatenate(found) if found else np.empty(0, np.int64)
