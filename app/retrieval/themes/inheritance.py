"""Ids that outlive a refresh: a theme that is mostly what one was before keeps its id, so that links to it go on. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

import numpy as np

from app.retrieval.themes.graph import Ints

MIN_JACCARD = 0.5
"""Of the passages that both maps place, what two themes have to share of those in either."""


@dataclass(frozen=True)
class Forebear:
    """A theme of the map before: a range of its leaves, which are numbered from 0."""

    id: UUID
    level: int
    first_leaf: int
    last_leaf: int

    @property
    def is_leaf(self) -> bool:
        return self.first_leaf == self.last_leaf


@dataclass(frozen=True)
class Ancestry:
    """The map before: its themes, and the leaf of each passage by id."""

    themes: Sequence[Forebear]
    leaves: Mapping[int, int]


def inherit_ids(
    ranges: Sequence[tuple[int, int, int]], passage_ids: Ints, passage_leaves: Ints, before: Ancestry | None
) -> list[UUID]:
    """An id for each theme, given as (level, first leaf, last leaf): that of the theme before which is most like it, by the
    Jaccard index of their passages, or a new one. No id is given twice."""
    found: dict[int, UUID] = {}
    if before is not None and before.themes and ranges:
        likeness = _likeness(ranges, passage_ids, passage_leaves, before)
        levels = np.array([level for level, _, _ in ranges])[:, None] == np.array([old.level for old in before.themes])
        places = np.argwhere(likeness >= MIN_JACCARD)
        # Where a theme and its only large child share their passages, level decides.
        ordered = sorted(places.tolist(), key=lambda at: (-likeness[*at], not levels[*at], at))
        given: set[int] = set()
        for new, old in ordered:
            if new not in found and old not in given:
                found[new] = before.themes[old].id
                given.add(old)
    return [found[place] if place in found else uuid4() for place in range(len(ranges))]


def _likeness(
    ranges: Sequence[tuple[int, int, int]], passage_ids: Ints, passage_leaves: Ints, before: Ancestry
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    old_leaves = np.array([before.leaves.get(passage, -1) for passage in passage_ids.tolist()], dtype=np.int64)
    both = (old_leaves >= 0) & (passage_leaves >= 0)
    shape = (
        max(last for _, _, last in ranges) + 1,
        max(max(theme.last_leaf for theme in before.themes), int(old_leaves.max(initial=0))) + 1,
    )
    # How many passages of each new leaf are in each old one, summed up so that any rectangle is four look-ups.
    sums = np.zeros((shape[0] + 1, shape[1] + 1))
    np.add.at(sums, (passage_leaves[both] + 1, old_leaves[both] + 1), 1)
    sums = sums.cumsum(axis=0).cumsum(axis=1)
    first = np.array([first for _, first, _ in ranges])[:, None]
    last = np.array([last for _, _, last in ranges])[:, None] + 1
    left = np.array([theme.first_leaf for theme in before.themes])[None, :]
    right = np.array([theme.last_leaf for theme in before.themes])[None, :] + 1
    shared = sums[last, right] - sums[first, right] - sums[last, left] + sums[first, left]
    new, old = sums[last, -1] - sums[first, -1], sums[-1, right] - sums[-1, left]
    either = new + old - shared
    found: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = shared / np.maximum(either, 1)
    return found
