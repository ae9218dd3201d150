"""Says why each passage came, as plain data for the answer's `details` and `sources`. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.retrieval.contract import Source
from app.retrieval.lazy.parameters import Flavour
from app.retrieval.lazy.ranking import Legs
from app.retrieval.lazy.traversal import Visit, Walk
from app.text.concepts.extraction import Concept, ConceptKind

_SHOWN_BRIDGES = 3


@dataclass(frozen=True)
class Trail:
    """How the concept graph was walked for one question."""

    flavour: Flavour
    concepts: Sequence[Concept]  # of the question
    seeds: Sequence[int]
    walk: Walk


def sources_of(legs: Legs, walk: Walk | None) -> dict[int, tuple[Source, ...]]:
    """Per passage which legs found it, at which rank and with which score of that leg."""
    masses: Mapping[int, float] = walk.masses if walk is not None else {}
    by_mass = sorted(masses.items(), key=lambda item: (-item[1], item[0]))
    ranked = {
        "bm25": [(hit.passage_id, hit.score) for hit in legs.lexical.hits],
        "vectors": [(hit.passage_id, hit.score) for hit in legs.dense],
        "concepts": by_mass,
    }
    found: dict[int, tuple[Source, ...]] = {}
    for leg, hits in ranked.items():
        for rank, (passage_id, score) in enumerate(hits, start=1):
            found[passage_id] = (*found.get(passage_id, ()), Source(leg, rank, score))
    return found


def explain(legs: Legs, trail: Trail | None, shown: Sequence[int]) -> dict[str, Any]:
    """The engine's own account of an answer: budgets and their use, concepts, and the reason for each passage in `shown`."""
    details: dict[str, Any] = {
        "llm_index_calls": 0,
        "corpus_passages": legs.lexical.corpus_passages,
        "lexical_share": legs.lexical_share,
        "term_coverage": legs.lexical.coverage,
    }
    if trail is None:
        return details
    seeds = set(trail.seeds)
    return details | {
        "question_concepts": [c.surface for c in trail.concepts if c.kind is not ConceptKind.PHRASE],
        "visited_concepts": [_visit(visit) for visit in trail.walk.visits],
        "budgets": {
            "seed_k": {"limit": trail.flavour.seeds, "used": len(trail.seeds)},
            "relevance_budget": {"limit": trail.flavour.concepts * trail.flavour.hops, "used": len(trail.walk.visits)},
            "max_concepts_per_chunk": trail.flavour.max_concepts_per_passage,
            "hops": trail.flavour.hops,
        },
        "passages": [
            {
                "passage_id": passage_id,
                "is_seed": passage_id in seeds,
                "bridges": _bridges(trail.walk, passage_id),
            }
            for passage_id in shown
        ],
    }


def _visit(visit: Visit) -> dict[str, Any]:
    return {"concept": visit.surface, "score": visit.score, "passages": visit.df, "from_passages": list(visit.starts)}


def _bridges(walk: Walk, passage_id: int) -> list[dict[str, Any]]:
    reasons = sorted(walk.reasons.get(passage_id, ()), key=lambda reason: (-reason[0], reason[1].key))
    return [
        {
            "concept": visit.surface,
            "weight": mass,
            "from_passages": [start for start in visit.starts if start != passage_id],
        }
        for mass, visit in reasons[:_SHOWN_BRIDGES]
    ]
