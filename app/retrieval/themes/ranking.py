"""Which themes a question is about, and in which order they are told. Pure.

Three legs rank the themes, each by itself: how much of the question's words a theme covers, how near its passages are, and
TF-IDF with each theme as one text. Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009) puts them together. How much
the two legs of words weigh falls with the part of the question that any theme covers: what a question in another
language shares with the corpus, a number or a stray word, must not decide.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from app.retrieval.theme_contract import Source

RRF_K: Final = 60
# Up to this part of the question's weight in one theme, words count nothing: ranks are so close after fusion that any
# weight would let a stray word decide.
STRAY_COVERAGE: Final = 0.2
# From this part on they count as much as vectors.
FULL_COVERAGE: Final = 0.4
# A theme is as near as its nearest passages: one alone may be near by chance, and the mean of all blurs a broad theme.
NEAREST_PASSAGES: Final = 3

COVERAGE, VECTORS, TF_IDF, IMPORTANCE = "coverage", "vectors", "tf_idf", "importance"
"""The legs; `importance` is the only one where nothing is asked."""

Key = TypeVar("Key", UUID, int, str)


@dataclass(frozen=True)
class TermUse:
    """How often a theme uses a term of the question, and in how many passages."""

    frequency: int
    passages: int


@dataclass(frozen=True)
class LegScores:
    """What the legs say of themes, each on its own scale; a theme that a leg does not find is missing there.

    `words` is the weight of both legs of words, from 0 to 1. None instead of scores: the leg was not searched.
    """

    coverage: Mapping[UUID, float] | None
    vectors: Mapping[UUID, float] | None
    tf_idf: Mapping[UUID, float] | None
    words: float


@dataclass(frozen=True)
class Routed:
    """A theme that a question leads to."""

    theme_id: UUID
    relevance: float
    coverage: float
    score: float
    sources: tuple[Source, ...]


def cover(uses: Mapping[UUID, Mapping[str, TermUse]], idf: Mapping[str, float]) -> dict[UUID, float]:
    """Per theme the part of the question's term weight that it holds, from 0 to 1. `idf` has every term of the question."""
    mass = sum(idf.values())
    if not mass:
        return {}
    held = {theme: sum(idf.get(term, 0.0) for term in used) / mass for theme, used in uses.items()}
    return {theme: min(1.0, part) for theme, part in held.items() if part > 0}


def tf_idf(
    uses: Mapping[UUID, Mapping[str, TermUse]],
    weights: Mapping[str, float],
    lengths: Mapping[UUID, int],
    themes: int,
) -> dict[UUID, float]:
    """Per theme the weighted sum of (1 + ln tf) · ln(1 + T / df) over the terms, by the square root of its passages: a
    theme is one text, df counts the themes that hold a term, and T is the number of themes."""
    df: dict[str, int] = {}
    for used in uses.values():
        for term in used:
            df[term] = df.get(term, 0) + 1
    scores = {}
    for theme, used in uses.items():
        total = sum(
            weights[term] * (1 + math.log(use.frequency)) * math.log1p(themes / df[term]) for term, use in used.items()
        )
        if total > 0:
            scores[theme] = total / math.sqrt(max(1, lengths.get(theme, 1)))
    return scores


def near(cosines: Sequence[tuple[UUID, float]]) -> dict[UUID, float]:
    """Per theme the mean cosine of its nearest passages; `cosines` are of passages, the nearest first.

    Where fewer passages of a theme are among those, the farthest of all stands for the others.
    """
    if not cosines:
        return {}
    farthest = cosines[-1][1]
    found: dict[UUID, list[float]] = {}
    for theme, cosine in cosines:
        best = found.setdefault(theme, [])
        if len(best) < NEAREST_PASSAGES:
            best.append(cosine)
    return {
        theme: (sum(best) + (NEAREST_PASSAGES - len(best)) * farthest) / NEAREST_PASSAGES
        for theme, best in found.items()
    }


def words_weight(coverage: Mapping[UUID, float]) -> float:
    """How much the legs of words count, from 0 to 1, by the theme that covers most of the question."""
    best = max(coverage.values(), default=0.0)
    return min(1.0, max(0.0, (best - STRAY_COVERAGE) / (FULL_COVERAGE - STRAY_COVERAGE)))


def ranked(scores: Mapping[Key, float]) -> dict[Key, int]:
    """Ranks from 1, best first; equal scores share a rank."""
    ranks: dict[Key, int] = {}
    previous, rank = None, 0
    for place, (key, score) in enumerate(sorted(scores.items(), key=lambda item: (-item[1], str(item[0]))), start=1):
        if score != previous:
            previous, rank = score, place
        ranks[key] = rank
    return ranks


def route_themes(legs: LegScores, importance: Mapping[UUID, float], *, coverage_weight: float) -> list[Routed]:
    """The themes that any leg finds, the most relevant first; `importance` names those that may be chosen.

    Relevance is the fused score by the largest that there can be: with all three legs 3 / (60 + 1).
    """
    given = {COVERAGE: legs.coverage, VECTORS: legs.vectors, TF_IDF: legs.tf_idf}
    searched = {
        name: {theme: score for theme, score in scores.items() if theme in importance}
        for name, scores in given.items()
        if scores is not None
    }
    has_vectors = bool(searched.get(VECTORS))
    words = legs.words if has_vectors else 1.0
    weights = {name: 1.0 if name == VECTORS else words for name in searched}
    most = sum(weights[name] for name, scores in searched.items() if scores) / (RRF_K + 1)
    ranks = {name: ranked(scores) for name, scores in searched.items()}
    coverages = _coverages(searched.get(COVERAGE, {}), searched.get(VECTORS, {}), words)
    routed = []
    for theme in {theme for found in ranks.values() for theme in found}:
        fused = sum(weights[name] / (RRF_K + found[theme]) for name, found in ranks.items() if theme in found)
        if not fused:
            continue
        coverage = coverages.get(theme, 0.0)
        routed.append(
            Routed(
                theme_id=theme,
                relevance=fused / most,
                coverage=coverage,
                score=coverage_weight * coverage + (1 - coverage_weight) * importance[theme],
                sources=tuple(
                    Source(name, found[theme], searched[name][theme]) for name, found in ranks.items() if theme in found
                ),
            )
        )
    return sorted(routed, key=lambda item: (-item.relevance, -item.score, str(item.theme_id)))


def chosen(routed: Sequence[Routed], top_k: int, min_relevance: float | None) -> list[Routed]:
    """The most relevant ones, in the order in which they are told: by query rank."""
    kept = [item for item in routed if min_relevance is None or item.relevance >= min_relevance][:top_k]
    return sorted(kept, key=lambda item: (-item.score, -item.relevance, str(item.theme_id)))


def _coverages(covered: Mapping[UUID, float], cosines: Mapping[UUID, float], words: float) -> dict[UUID, float]:
    """How much of the question a theme covers: by its words, and as far as words do not count, by its vectors, scaled to
    the nearest and the farthest theme."""
    best, last = max(cosines.values(), default=0.0), min(cosines.values(), default=0.0)
    scaled = {theme: (cosine - last) / (best - last) if best > last else 1.0 for theme, cosine in cosines.items()}
    return {
        theme: words * covered.get(theme, 0.0) + (1 - words) * scaled.get(theme, 0.0) for theme in {*covered, *scaled}
    }
