"""Answers `baseline` and the lazy modes: two legs, their fusion, and for the lazy modes a walk over the concept graph.

No model is asked but the workspace's embedding, once for the question.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from app.db.session import Database, TenantSession
from app.providers.contract import Vectors
from app.retrieval.contract import (
    EngineWorkspace,
    PassageEvidence,
    SearchRequest,
    SearchResult,
    UnknownMode,
    WorkspaceRef,
)
from app.retrieval.lazy.explanation import Trail, explain, sources_of
from app.retrieval.lazy.parameters import DEFAULT_FLAVOUR, FLAVOURS, LEG_SIZE, Flavour
from app.retrieval.lazy.ranking import Legs, final_scores, fuse
from app.retrieval.lazy.store import load_postings, load_seeds
from app.retrieval.lazy.traversal import Question, Walk, activate, choose, expand, next_front, seed_weights
from app.retrieval.store.passages import load_evidence
from app.retrieval.store.postings import search_terms
from app.retrieval.store.vectors import PassageVectors
from app.text.concepts.extraction import query_concepts


@dataclass
class Stopwatch:
    """Milliseconds by stage."""

    stages: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.stages[name] = round((time.perf_counter() - started) * 1000, 3)


class LazySearch:
    """A `Search` over the lazy index."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(self, workspace: EngineWorkspace, request: SearchRequest) -> SearchResult:
        """The best passages of trusted versions; without any only where no leg finds anything, which a note then says.

        Raises `UnknownMode` for a mode of another engine.
        """
        flavour = FLAVOURS.get(DEFAULT_FLAVOUR if request.mode == "lazy" else request.mode)
        if flavour is None and request.mode != "baseline":
            raise UnknownMode(f"'{request.mode}' is not a mode of the lazy engine", mode=request.mode)
        clock = Stopwatch()
        with clock.stage("embedding"):
            query = (await workspace.embedding.embed([request.query], role="query"))[0]
        async with self._database.tenant(workspace.ref.tenant_id) as session:
            legs = await _search_legs(session, workspace, request, query, clock)
            trail, scores = None, legs.fused
            if flavour is not None:
                with clock.stage("graph"):
                    trail = await _walk(session, workspace.ref, request.query, legs, flavour)
                scores = final_scores(legs.fused, trail.walk.masses, trail.seeds)
            with clock.stage("passages"):
                found = await _load(session, workspace.ref, scores, request)
        sources = sources_of(legs, None if trail is None else trail.walk)
        passages = tuple(
            replace(passage, score=scores[passage.passage_id], sources=sources[passage.passage_id]) for passage in found
        )
        return SearchResult(
            passages,
            stage_ms=clock.stages,
            notes=() if passages else ("No passage of the workspace matches the question.",),
            details=explain(legs, trail, [passage.passage_id for passage in passages]),
        )


async def _search_legs(
    session: TenantSession, workspace: EngineWorkspace, request: SearchRequest, query: Vectors, clock: Stopwatch
) -> Legs:
    with clock.stage("vectors"):
        dense = await PassageVectors(workspace.vector_suffix).nearest(
            session, workspace.ref, query, LEG_SIZE, include_partial=request.include_partial
        )
    with clock.stage("terms"):
        lexical = await search_terms(
            session, workspace.ref, request.query, LEG_SIZE, include_partial=request.include_partial
        )
    return fuse(lexical, dense)


async def _walk(session: TenantSession, ref: WorkspaceRef, query: str, legs: Legs, flavour: Flavour) -> Trail:
    """From the seeds over their concepts to the passages that share them, as many hops as the flavour has."""
    concepts = query_concepts(query)
    question = Question(legs.lexical.idf, frozenset(concept.key for concept in concepts))
    seeds = list(legs.fused)[: flavour.seeds]
    walk = Walk()
    weights = seed_weights(legs.fused, seeds)
    for _ in range(flavour.hops if seeds else 0):
        starts = await load_seeds(session, ref, list(weights))
        activations = activate(question, [starts[start] for start in weights if start in starts], weights, flavour)
        postings = await load_postings(
            session, ref, [activation.key for activation in activations], max_df=flavour.max_df
        )
        used = {visit.key for visit in walk.visits}
        expand(walk, choose(activations, postings, legs.lexical.corpus_passages, flavour, used), postings)
        weights = next_front(walk, legs.fused, seeds)
    return Trail(flavour, concepts, seeds, walk)


async def _load(
    session: TenantSession, ref: WorkspaceRef, scores: Mapping[int, float], request: SearchRequest
) -> list[PassageEvidence]:
    """The best passages within both limits; the graph may have reached some that are not trusted, which are skipped."""
    found: list[PassageEvidence] = []
    ids = list(scores)
    step = 2 * request.top_k
    for start in range(0, len(ids), step):
        found += await load_evidence(
            session, ref, ids[start : start + step], engine="lazy", include_partial=request.include_partial
        )
        if len(found) >= request.top_k:
            break
    return found[: request.top_k]
