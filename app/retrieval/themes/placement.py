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
            break
        leaves[np.isin(leaves, small)] = -1
    adopted = _adopt(vocabulary, leaves, chosen)
    if (adopted == leaves).all():
        return chosen, weights, leaves
    # Passages that only had concepts without a home find one; the others stay where they are.
    again, again_weights = place(vocabulary, adopted, passages)
    is_new = chosen < 0
    return np.where(is_new, again, chosen), np.where(is_new, again_weights, weights), adopted


def _adopt(vocabulary: Vocabulary, leaves: Ints, chosen: Ints) -> Ints:
    """Give concepts whose community was too small to the leaf that most of their passages are in."""
    homeless = vocabulary.in_window & (leaves < 0)
    held = homeless[vocabulary.concepts] & (chosen[vocabulary.owners] >= 0)
    adopted = leaves.copy()
    if held.any():
        count = int(chosen.max()) + 1
        codes, times = np.unique(
            vocabulary.concepts[held] * count + chosen[vocabulary.owners[held]], return_counts=True
        )
        concepts, found = codes // count, codes % count
        order = np.lexsort((found, -times, concepts))
        best = order[np.r_[True, np.diff(concepts[order]) != 0]]
        adopted[concepts[best]] = found[best]
    return adopted
