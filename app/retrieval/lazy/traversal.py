"""The walk over the concept graph: from seed passages to their concepts, and on to the passages that share them. Pure.

No edge is stored anywhere: a concept's postings are its edges.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from app.retrieval.lazy.parameters import (
    DF_POWER,
    FRONT_FLOOR,
    FRONT_SIZE,
    FRONT_SKIPS_SEEDS,
    KIND_WEIGHTS,
    LEAD_BONUS,
    OVERLAP_FLOOR,
    OWN_LEAD_FACTOR,
    OWN_TITLE_FACTOR,
    PROMINENT_BONUS,
    QUERY_CONCEPT_FACTOR,
    REST_PASSAGES,
    REST_TERMS,
    REST_WEIGHT,
    SEED_POWER,
    TITLE_BONUS,
    Flavour,
)
from app.retrieval.lazy.ranking import lift
from app.retrieval.lazy.selection import is_lead, is_prominent, is_title, kind_of, rank_of
from app.retrieval.lazy.store import Postings, SeedPassage
from app.text.concepts.terms import terms
from app.text.sentences import split_sentences


@dataclass(frozen=True)
class Question:
    """What is known of the question: the weight of each of its terms, and the keys of its own concepts."""

    idf: Mapping[str, float]
    concepts: Set[int]

    def overlap(self, sentence: str) -> float:
        """The part of the question's term weight that a sentence holds."""
        held = self.idf.keys() & terms(sentence)
        return sum([self.idf[term] for term in sorted(held)]) / self.weight if held else 0.0

    @cached_property
    def weight(self) -> float:
        return sum(self.idf.values())


@dataclass(frozen=True)
class Activation:
    """A concept found in start passages, before and after its document frequency is known."""

    key: int
    surface: str
    strengths: Mapping[int, float]  # by start passage

    @property
    def strongest(self) -> float:
        return max(self.strengths.values())


@dataclass(frozen=True)
class Visit:
    """A concept that was expanded."""

    key: int
    surface: str
    score: float
    df: int
    starts: tuple[int, ...]


@dataclass
class Walk:
    """What has been reached so far. `reasons` keeps, per passage, which concept carried how much to it."""

    masses: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    reasons: defaultdict[int, list[tuple[float, Visit]]] = field(default_factory=lambda: defaultdict(list))
    visits: list[Visit] = field(default_factory=list)


def seed_weights(plain: Mapping[int, float], seeds: Sequence[int]) -> dict[int, float]:
    """How far each seed is trusted: its plain score against the best one's, with a power that favours the first."""
    top = max((plain[seed] for seed in seeds), default=0.0)
    return {seed: (plain[seed] / top) ** SEED_POWER if top > 0 else 1.0 for seed in seeds}


def activate(
    question: Question, starts: Sequence[SeedPassage], weights: Mapping[int, float], flavour: Flavour
) -> list[Activation]:
    """The concepts of the start passages with all but their document frequency weighed in, strongest first."""
    strengths: defaultdict[int, dict[int, float]] = defaultdict(dict)
    surfaces: dict[int, str] = {}
    for start in starts:
        weight, overlaps = weights[start.passage_id], _overlaps(question, start)
        nearness: dict[int, float] = {}  # by the sentences of a concept, which many share
        for key, flags, mask, surface in start.mentions:
            if rank_of(flags) >= flavour.max_concepts_per_passage:
                continue
            if mask not in nearness:
                nearness[mask] = _nearness(overlaps, mask)
            strength = weight * KIND_WEIGHTS[kind_of(flags)] * nearness[mask]
            if key in question.concepts:
                strength *= QUERY_CONCEPT_FACTOR
            if is_title(flags):
                strength *= OWN_TITLE_FACTOR
            elif is_lead(flags):
                strength *= OWN_LEAD_FACTOR
            if strength > 0:
                strengths[key][start.passage_id] = strength
                surfaces.setdefault(key, surface)
    found = [Activation(key, surfaces[key], by_start) for key, by_start in strengths.items()]
    return sorted(found, key=lambda activation: (-activation.strongest, activation.key))[: flavour.probes]


def _overlaps(question: Question, start: SeedPassage) -> list[float]:
    """By bit of `Mention.sentences`: what stands above the passage first, then its sentences."""
    above = "\n".join([start.title, *start.heading_path])
    return [question.overlap(sentence) for sentence in [above, *split_sentences(start.text)]]


def _nearness(overlaps: Sequence[float], mask: int) -> float:
    held = [overlap for bit, overlap in enumerate(overlaps) if mask >> bit & 1]
    return math.sqrt(OVERLAP_FLOOR + (1 - OVERLAP_FLOOR) * max(held, default=0.0))


def rarity(df: int, corpus_passages: int) -> float:
    """BM25's idf of a concept, as a part of the highest possible one."""
    corpus = max(corpus_passages, df)
    return math.log1p((corpus - df + 0.5) / (df + 0.5)) / math.log1p(corpus)


def choose(
    activations: Sequence[Activation], postings: Postings, corpus_passages: int, flavour: Flavour, used: Set[int]
) -> list[Visit]:
    """The concepts to expand, best first: strong ones that few passages share. One in a single passage leads nowhere."""
    visits = []
    for activation in activations:
        df = len(postings.get(activation.key, ()))
        if activation.key in used or not 1 < df <= flavour.max_df:
            continue
        weight = rarity(df, corpus_passages)
        # Noisy-or: several starts that agree make a concept more likely, never more than certain.
        doubt = math.prod(1 - strength * weight for strength in activation.strengths.values())
        starts = tuple(sorted(activation.strengths, key=lambda start: (-activation.strengths[start], start)))
        visits.append(Visit(activation.key, activation.surface, 1 - doubt, df, starts))
    visits.sort(key=lambda visit: (-visit.score / visit.df, visit.key))
    return visits[: flavour.concepts]


def expand(walk: Walk, visits: Sequence[Visit], postings: Postings) -> None:
    """One step: each concept spreads its score over the passages that hold it, most to those it is the title of."""
    walk.visits.extend(visits)
    for visit in visits:
        share = visit.score / visit.df**DF_POWER
        for passage_id, flags in sorted(postings[visit.key]):
            if visit.starts == (passage_id,):
                continue
            mass = share * (1 + _prominence(flags))
            walk.masses[passage_id] += mass
            walk.reasons[passage_id].append((mass, visit))


def _prominence(flags: int) -> float:
    bonus = TITLE_BONUS if is_title(flags) else LEAD_BONUS if is_lead(flags) else 0.0
    return bonus + PROMINENT_BONUS if is_prominent(flags) else bonus


def rest_terms(question: Question) -> list[str]:
    """The terms of the question by which reached passages are told apart: the rarest."""
    return sorted(question.idf, key=lambda term: (-question.idf[term], term))[:REST_TERMS]


def rest_passages(walk: Walk) -> list[int]:
    """The reached passages that are worth a look: those with most mass."""
    return sorted(walk.masses, key=lambda passage_id: (-walk.masses[passage_id], passage_id))[:REST_PASSAGES]


def weigh_rest(walk: Walk, question: Question, first: int, held: Mapping[int, Set[str]]) -> None:
    """Mass counts more in a passage that holds what the first seed leaves unanswered.

    The first seed mostly answers one part of a question of several hops; the passage that is looked for has the rest.
    `held` are the question's terms of each passage that was looked into.
    """
    idf = question.idf
    known = held.get(first, frozenset())
    for passage_id, terms_held in held.items():
        # In the question's order: the order of a set differs from process to process, and with it the sum's last digit.
        rest = [term for term in idf if passage_id == first or term not in known]
        total = sum([idf[term] for term in rest])
        if passage_id in walk.masses and total:
            part = sum([idf[term] for term in rest if term in terms_held]) / total
            walk.masses[passage_id] *= 1 + REST_WEIGHT * part


def next_front(walk: Walk, plain: Mapping[int, float], seeds: Sequence[int]) -> dict[int, float]:
    """Where a further hop starts: the passages reached best that the question is close to, with their weights."""
    known = set(seeds[:FRONT_SKIPS_SEEDS])
    weights = {
        passage_id: lift(mass) * (FRONT_FLOOR + (1 - FRONT_FLOOR) * plain.get(passage_id, 0.0))
        for passage_id, mass in walk.masses.items()
        if passage_id not in known
    }
    best = sorted(weights, key=lambda passage_id: (-weights[passage_id], passage_id))[:FRONT_SIZE]
    return {passage_id: weights[passage_id] for passage_id in best}
