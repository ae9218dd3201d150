"""The plain co-occurrence search that the lazy modes set out from, in memory, as a yardstick for them.

Concepts are the most frequent tokens and capitalised phrases of a passage, Latin letters only. Concepts of one passage
are joined by an edge that counts how often they share one. A search starts at the question's concepts (score 4) and at
those of its seeds (3 by rank), visits the strongest ones up to its budget, gives each visit's score to all passages of
the concept, and half of it, by the share of the strongest edge, to its 16 strongest neighbours.
"""

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Final

_WORD: Final = re.compile(r"\b[A-Za-z][A-Za-z0-9_.-]{2,}\b")
_PHRASE: Final = re.compile(r"\b[A-Z][A-Za-z0-9_.-]{2,}(?:\s+[A-Z][A-Za-z0-9_.-]{2,}){1,3}\b")
_FUNCTION_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """about after also among and are because been before being between both but can could does each for from had has
    have into its may more most not over such than that the their then there these they this through under using was
    were what when where which while who will with would your""",
    )
)
_PHRASE_WEIGHT: Final = 2
_QUESTION_CONCEPTS: Final = 16
_QUESTION_SCORE: Final = 4.0
_SEED_SCORE: Final = 3.0
_NEIGHBOURS: Final = 16
_DECAY: Final = 0.5


@dataclass(frozen=True)
class ShowcaseBudget:
    """What one search may use."""

    visits: int
    seeds: int
    context: int  # passages of an answer, of which a search itself gives as many as it is asked for
    concepts: int  # kept of a passage


SHOWCASE_BUDGETS: Final[Mapping[str, ShowcaseBudget]] = {
    "showcase-fast": ShowcaseBudget(visits=8, seeds=4, context=4, concepts=16),
    "showcase": ShowcaseBudget(visits=24, seeds=8, context=8, concepts=24),
    "showcase-wide": ShowcaseBudget(visits=64, seeds=16, context=12, concepts=32),
}


def showcase_concepts(text: str, limit: int) -> list[str]:
    """The `limit` most frequent tokens and phrases of `text` in lower case, ties in order of appearance."""
    counts: Counter[str] = Counter()
    places: dict[str, int] = {}
    for place, concept, weight in _mentions(text):
        counts[concept] += weight
        places.setdefault(concept, place)
    return sorted(counts, key=lambda concept: (-counts[concept], places[concept], concept))[:limit]


def _mentions(text: str) -> Iterator[tuple[int, str, int]]:
    for match in _PHRASE.finditer(text):
        yield match.start(), " ".join(match.group().lower().split()), _PHRASE_WEIGHT
    for match in _WORD.finditer(text):
        word = match.group().lower().strip(".-_")
        if len(word) > 2 and word not in _FUNCTION_WORDS:
            yield match.start(), word, 1


@dataclass
class ShowcaseIndex:
    """All passages of a corpus by id, as (title, text), and the graph of their concepts under one budget."""

    passages: Mapping[int, tuple[str, str]]
    budget: ShowcaseBudget
    _neighbours: dict[str, list[tuple[str, float]]] = field(default_factory=dict)

    @cached_property
    def concepts(self) -> dict[int, list[str]]:
        """The concepts of each passage."""
        return {
            passage_id: showcase_concepts(f"{title}. {text}", self.budget.concepts)
            for passage_id, (title, text) in self.passages.items()
        }

    @cached_property
    def postings(self) -> dict[str, list[int]]:
        """The passages of each concept."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for passage_id, concepts in self.concepts.items():
            for concept in concepts:
                found[concept].append(passage_id)
        return dict(found)

    @cached_property
    def edges(self) -> dict[str, Counter[str]]:
        """How many passages two concepts share."""
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for concepts in self.concepts.values():
            for left, right in combinations(concepts, 2):
                found[left][right] += 1
                found[right][left] += 1
        return dict(found)

    def search(self, question: str, seeds: Sequence[int]) -> list[int]:
        """Passages by score, best first; `seeds` are those of a plain search, best first, of which the budget's are used."""
        scores: defaultdict[int, float] = defaultdict(float)
        starts = dict.fromkeys(showcase_concepts(question, _QUESTION_CONCEPTS), _QUESTION_SCORE)
        for rank, seed in enumerate(seeds[: self.budget.seeds], start=1):
            scores[seed] += _SEED_SCORE / rank
            for concept in self.concepts[seed]:
                starts[concept] = max(starts.get(concept, 0.0), _SEED_SCORE / rank)
        for concept, score in self._visits(starts):
            for passage_id in self.postings[concept]:
                scores[passage_id] += score
        return sorted(scores, key=lambda passage_id: (-scores[passage_id], self.passages[passage_id][0], passage_id))

    def _visits(self, starts: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """The concepts visited with their scores, strongest first."""
        queue = [(-score, concept) for concept, score in starts.items() if concept in self.postings]
        heapq.heapify(queue)
        best = {concept: -score for score, concept in queue}
        visited: set[str] = set()
        while queue and len(visited) < self.budget.visits:
            negative, concept = heapq.heappop(queue)
            if concept in visited:
                continue
            visited.add(concept)
            yield concept, -negative
            for neighbour, share in self._strongest(concept):
                score = -negative * _DECAY * share
                if score > best.get(neighbour, 0.0):
                    best[neighbour] = score
                    heapq.heappush(queue, (-score, neighbour))

    def _strongest(self, concept: str) -> list[tuple[str, float]]:
        """The strongest neighbours of a concept with their edge's share of the strongest one."""
        if concept not in self._neighbours:
            edges = self.edges.get(concept, Counter())
            ordered = heapq.nsmallest(_NEIGHBOURS, edges.items(), key=lambda edge: (-edge[1], edge[0]))
            top = ordered[0][1] if ordered else 1
            self._neighbours[concept] = [(neighbour, weight / top) for neighbour, weight in ordered]
        return self._neighbours[concept]
