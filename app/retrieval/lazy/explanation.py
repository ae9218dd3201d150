"""Says why each passage came, as plain data for the answer's `details` and `sources`. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from app.retrieval.contract import EngineWorkspace, Source
from app.retrieval.lazy.parameters import NAMED_SHARE, Flavour
from app.retrieval.lazy.ranking import Legs
from app.retrieval.lazy.traversal import Visit, Walk
from app.text.concepts.extraction import Concept, ConceptKind

_SHOWN_BRIDGES = 3


@dataclass
class Trail:
    """How the concept graph was walked for one question."""

    flavour: Flavour
    concepts: Sequence[Concept]  # of the question
    named: Set[int]  # passages that are about one of them
    plain: Mapping[int, float]  # the fusion with those lifted, best first
    seeds: Sequence[int]
    walk: Walk = field(default_factory=Walk)
    probed: int = 0  # concepts whose postings were looked up
    remembered: int = 0  # of these, how many a cache knew

    @property
    def relevance_tests(self) -> int:
        """How often the relevance of a concept or of a passage was computed."""
        return self.probed + len(self.walk.masses)


def sources_of(legs: Legs, trail: Trail | None, shown: Set[int]) -> dict[int, tuple[Source, ...]]:
    """Per passage of `shown` which legs found it, at which rank and with which score of that leg."""
    masses: Mapping[int, float] = trail.walk.masses if trail is not None else {}
    named = [passage_id for passage_id in trail.plain if passage_id in trail.named] if trail is not None else []
    by_mass = sorted(masses.items(), key=lambda item: (-item[1], item[0]))
    ranked = {
        "bm25": [(hit.passage_id, hit.score) for hit in legs.lexical.hits],
        "vectors": [(hit.passage_id, hit.score) for hit in legs.dense.hits],
        "names": [(passage_id, NAMED_SHARE) for passage_id in named],
        "concepts": by_mass,
    }
    found: dict[int, tuple[Source, ...]] = {}
    for leg, hits in ranked.items():
        for rank, (passage_id, score) in enumerate(hits, start=1):
            if passage_id not in shown:
                continue
            found[passage_id] = (*found.get(passage_id, ()), Source(leg, rank, score))
    return found


def withheld_of(legs: Legs, wanted: int) -> dict[str, int]:
    """Passages by the reason why they may not be used, of those that would stand among the first `wanted` of a leg."""
    found = {
        passage_id: reason
        for leg in (legs.lexical.withheld, legs.dense.withheld)
        for passage_id, (before, reason) in leg.items()
        if before < wanted
    }
    return dict(sorted(Counter(found.values()).items()))


def unsearched(workspace: EngineWorkspace) -> dict[str, Any]:
    """The account of a search whose filter allowed nothing."""
    cache = {"hit": False, "corpus_version": workspace.corpus_version}
    return {"llm_index_calls": 0, "cache": cache, "relevance_tests": 0, "budgets": {}}


def explain(legs: Legs, trail: Trail | None, shown: Sequence[int], corpus_version: int | None) -> dict[str, Any]:
    """The engine's own account of an answer: budgets and their use, concepts, and the reason for each passage in `shown`."""
    lexical = legs.lexical
    cache: dict[str, Any] = {"hit": False, "corpus_version": corpus_version}
    details: dict[str, Any] = {
        "llm_index_calls": 0,
        "index": {"passages": lexical.corpus_passages, "terms": lexical.corpus_terms},
        "lexical_share": legs.lexical_share,
        "term_coverage": lexical.coverage,
        "cache": cache,
    }
    if trail is None:
        return details
    flavour, walk = trail.flavour, trail.walk
    cache["concepts"] = {"hits": trail.remembered, "misses": trail.probed - trail.remembered}
    return details | {
        "question_concepts": [c.surface for c in trail.concepts if c.kind is not ConceptKind.PHRASE],
        "visited_concepts": [_visit(visit) for visit in walk.visits],
        "relevance_tests": trail.relevance_tests,
        "budgets": {
            "relevance_budget": {"limit": flavour.concepts, "hops": flavour.hops, "used": len(walk.visits)},
            "seed_k": {"limit": flavour.seeds, "used": len(trail.seeds)},
            "max_context_chunks": {"limit": flavour.returned, "used": len(shown)},
            "max_concepts_per_chunk": {"limit": flavour.max_concepts_per_passage},
        },
        "passages": [_reason(trail, passage_id) for passage_id in shown],
    }


def _reason(trail: Trail, passage_id: int) -> dict[str, Any]:
    return {
        "passage_id": passage_id,
        "is_seed": passage_id in trail.seeds,
        "bridges": _bridges(trail.walk, passage_id),
        "path": _path(trail, passage_id),
    }


def _path(trail: Trail, passage_id: int) -> list[dict[str, Any]]:
    """The strongest way here: a seed, then in turn a concept and the passage that it led to; empty without one."""
    path: list[dict[str, Any]] = [{"passage_id": passage_id}]
    here = passage_id
    for _ in range(trail.flavour.hops):
        reasons = trail.walk.reasons.get(here, ())
        if not reasons or (path[1:] and here in trail.seeds):
            break
        visit = max(reasons, key=lambda reason: (reason[0], -reason[1].key))[1]
        here = next(start for start in visit.starts if start != here)
        path = [{"passage_id": here}, {"concept": visit.surface}, *path]
    return path if len(path) > 1 else []


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
