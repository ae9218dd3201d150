"""Merges ranked lists of passages by reciprocal rank fusion, and remembers which list found what at which rank."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from app.retrieval.contract import PassageEvidence, Source
from app.retrieval.store.hits import Hit

# Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet" (SIGIR 2009): sum of 1 / (60 + rank).
RRF_K = 60


@dataclass(frozen=True)
class Leg:
    """One ranked list: (passage id, rank from 1, score of the leg or None). Passages may share a rank."""

    name: str
    ranks: Sequence[tuple[int, int, float | None]]

    @classmethod
    def of_hits(cls, name: str, hits: Iterable[Hit]) -> Self:
        """A leg of scored passages, best first."""
        return cls(name, [(hit.passage_id, rank, float(hit.score)) for rank, hit in enumerate(hits, 1)])


def fuse(passages: Mapping[int, PassageEvidence], legs: Sequence[Leg]) -> list[PassageEvidence]:
    """The passages that some leg ranked, best first, with their fused score and sources; equal ones by id."""
    sources: dict[int, list[Source]] = {}
    scores: dict[int, float] = {}
    for leg in legs:
        for passage_id, rank, score in leg.ranks:
            if passage_id in passages:
                sources.setdefault(passage_id, []).append(Source(leg.name, rank, score))
                scores[passage_id] = scores.get(passage_id, 0.0) + 1 / (RRF_K + rank)
    order = sorted(scores, key=lambda passage_id: (-scores[passage_id], passage_id))
    return [
        replace(passages[passage_id], score=scores[passage_id], sources=tuple(sources[passage_id]))
        for passage_id in order
    ]
