"""In which leaf a passage is: where its concepts weigh most, rare ones most of all. Pure.

`app/retrieval/store/theme_placing.py` says the same in SQL, for passages that come after a build.
"""

import numpy as np

from app.retrieval.themes.graph import Floats, Ints, Vocabulary

MIN_PASSAGES = 2
"""A community that fewer passages are in is no theme; its passages go where the rest of their concepts are."""


def weights_of(df: Ints) -> Floats:
    """What one concept says for its leaf: 1 / ln(1 + df)."""
    found: Floats = 1.0 / np.log1p(df)
    return found


def place(vocabulary: Vocabulary, leaves: Ints, passages: int) -> tuple[Ints, Floats]:
    """The leaf of each passage, -1 for none, and its weight there. `leaves` are those of the concepts, -1 for none."""
    count = int(leaves.max(initial=-1)) + 1
    chosen, chosen_weights = np.full(passages, -1, dtype=np.int64), np.zeros(passages)
    held = leaves[vocabulary.concepts] >= 0
    if not held.any():
        return chosen, chosen_weights
    concepts = vocabulary.concepts[held]
    codes = vocabulary.owners[held] * count + leaves[concepts]
    found, places = np.unique(codes, return_inverse=True)
    sums = np.bincount(places, weights=weights_of(vocabulary.df[concepts]))
    owners, own_leaves = found // count, found % count
    order = np.lexsort((own_leaves, -sums, owners))
    best = order[np.r_[True, np.diff(owners[order]) != 0]]
    chosen[owners[best]], chosen_weights[owners[best]] = own_leaves[best], sums[best]
    return chosen, chosen_weights


def place_in_themes(vocabulary: Vocabulary, leaves: Ints, passages: int) -> tuple[Ints, Floats, Ints]:
    """As `place`, and the leaves of the concepts without those that too few passages are in."""
    leaves = leaves.copy()
    while True:
        chosen, weights = place(vocabulary, leaves, passages)
        sizes = np.bincount(chosen[chosen >= 0], minlength=int(leaves.max(initial=-1)) + 1)
        small = np.flatnonzero((sizes < MIN_PASSAGES) & np.isin(np.arange(len(sizes)), leaves))
        if not len(small):
            return chosen, weights, leaves
        leaves[np.isin(leaves, small)] = -1
