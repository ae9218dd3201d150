"""How passages are scored: the fusion of the two legs, and the lift that the concept graph gives. Pure.

The formulas come from the project's own experiments; each constant stands in `parameters`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.retrieval.lazy.parameters import FULL_COVERAGE, GRAPH_WEIGHT, KEPT_PLACES, LEXICAL_SHARE, SEED_DAMPING
from app.retrieval.store.hits import Hit, Ranking
from app.retrieval.store.postings import LexicalResult


@dataclass(frozen=True)
class Legs:
    """What both legs found and their fusion. `lexical_share` is the weight that BM25 got, the vectors have the rest."""

    lexical: LexicalResult
    dense: Ranking
    fused: Mapping[int, float]  # best first, at most 1
    lexical_share: float


def fuse(lexical: LexicalResult, dense: Ranking) -> Legs:
    """Convex combination of both legs, each scaled to its own best and, for vectors, to its last.

    How much BM25 weighs depends on the part of the question's term weight that its best passage holds: a question in
    another language than the corpus shares few terms with it, and is then answered by the vectors alone.
    No similarity is compared with a fixed threshold, for models differ in their ranges.
    """
    share = lexical_share(lexical.coverage) if dense.hits else 1.0
    words = {hit.passage_id: hit.score / lexical.hits[0].score for hit in lexical.hits}
    meanings = _scaled(dense.hits)
    scores = {
        passage_id: share * words.get(passage_id, 0.0) + (1 - share) * meanings.get(passage_id, 0.0)
        for passage_id in words.keys() | meanings.keys()
    }
    return Legs(lexical, dense, dict(sorted(scores.items(), key=_best_first)), share)


def lexical_share(coverage: float) -> float:
    """The weight of BM25 in the fusion."""
    return LEXICAL_SHARE * min(1.0, coverage / FULL_COVERAGE)


def _scaled(hits: Sequence[Hit]) -> dict[int, float]:
    if not hits:
        return {}
    best, last = hits[0].score, hits[-1].score
    if best <= last:
        return {hit.passage_id: 1.0 for hit in hits}
    return {hit.passage_id: (hit.score - last) / (best - last) for hit in hits}


def lift(mass: float) -> float:
    """The concept graph's evidence for a passage, from 0 to below 1."""
    return mass / (mass + 1)


def final_scores(plain: Mapping[int, float], masses: Mapping[int, float], seeds: Iterable[int]) -> dict[int, float]:
    """All passages by final score, best first; ties go by id.

    `plain` is the fusion's score, best first; `masses` what the graph carried to a passage. Seeds were found without
    it and gain a part. The first of the plain ranking stay near the top, the very first where it is (`KEPT_PLACES`).
    """
    damped = set(seeds)
    scores = {
        passage_id: plain.get(passage_id, 0.0)
        + GRAPH_WEIGHT * lift(masses.get(passage_id, 0.0)) * (SEED_DAMPING if passage_id in damped else 1.0)
        for passage_id in plain.keys() | masses.keys()
    }
    order = [passage_id for passage_id, _ in sorted(scores.items(), key=_best_first)]
    for passage_id, place in zip(plain, KEPT_PLACES, strict=False):
        if order.index(passage_id) > place:
            order.remove(passage_id)
            order.insert(place, passage_id)
    # Whatever was moved up gets the score of the one behind it, so that scores fall along the ranking.
    best_behind = -math.inf
    for passage_id in reversed(order):
        best_behind = scores[passage_id] = max(scores[passage_id], best_behind)
    return {passage_id: scores[passage_id] for passage_id in order}


def _best_first(item: tuple[int, float]) -> tuple[float, int]:
    return -item[1], item[0]
