"""Answers `baseline` and the lazy modes: two legs, their fusion, and for the lazy modes a walk over the concept graph.

No model is asked but the workspace's embedding, once for the question.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from app.db.session import Database, TenantSession
from app.providers.contract import Vectors
from app.retrieval.budgets import DEFAULT_TOP_K
from app.retrieval.concepts import MAX_NODES, ConceptGraph
from app.retrieval.contract import EngineWorkspace, PassageEvidence, SearchRequest, SearchResult, WorkspaceRef
from app.retrieval.deadline import asked, leg
from app.retrieval.filters import NO_FILTER, EvidenceFilter
from app.retrieval.lazy.budgets import flavour_of
from app.retrieval.lazy.cache import SearchCache, evidence_bytes, evidence_key, postings_through
from app.retrieval.lazy.explanation import Trail, explain, sources_of, unsearched, withheld_of
from app.retrieval.lazy.naming import lift_named, named_passages, naming_keys
from app.retrieval.lazy.neighbourhood import draw, trusted_postings, without
from app.retrieval.lazy.parameters import DEFAULT_FLAVOUR, FLAVOURS, LEG_SIZE, NAMED_PASSAGES, Flavour
from app.retrieval.lazy.ranking import Legs, final_scores, fuse
from app.retrieval.lazy.store import (
    Postings,
    load_corpus_version,
    load_held,
    load_named,
    load_postings,
    load_seeds,
    load_untrusted,
)
from app.retrieval.lazy.traversal import (
    Activation,
    Question,
    activate,
    choose,
    expand,
    next_front,
    rest_passages,
    rest_terms,
    seed_weights,
    weigh_rest,
)
from app.retrieval.store.allowed import Allowed, nothing_allowed, resolve
from app.retrieval.store.hits import Ranking
from app.retrieval.store.passages import load_evidence, trusted_ids
from app.retrieval.store.postings import LexicalResult, search_terms
from app.retrieval.store.vectors import PassageVectors
from app.text.concepts.extraction import Concept, concept_key, query_concepts


@dataclass
class Stopwatch:
    """Milliseconds by stage."""

    stages: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.stages[name] = _milliseconds_since(started)


class LazySearch:
    """A `Search` over the lazy index. What was found is remembered within `cache_bytes` for as long as the corpus stands."""

    def __init__(self, database: Database, *, cache_bytes: int = 0) -> None:
        self._database = database
        self._cache = SearchCache.of_bytes(cache_bytes)

    async def search(self, workspace: EngineWorkspace, request: SearchRequest) -> SearchResult:
        """The best passages of trusted versions; without any only where no leg finds anything, which a note then says.

        Raises `UnknownMode` for a mode of another engine.
        """
        flavour = flavour_of(request)
        key = evidence_key(workspace, request)
        if key is None or self._cache.evidence.is_off:
            return await self._search(workspace, request, flavour)
        started = time.perf_counter()
        found, is_hit = await self._cache.evidence.get(
            key, lambda: self._search(workspace, request, flavour), partial(evidence_bytes, workspace)
        )
        if not is_hit:
            return found
        cache = {**found.details["cache"], "hit": True}
        return replace(
            found, stage_ms={"cache": _milliseconds_since(started)}, details={**found.details, "cache": cache}
        )

    async def neighbourhood(
        self, workspace: EngineWorkspace, query: str, *, nodes: int, within: EvidenceFilter = NO_FILTER
    ) -> ConceptGraph:
        """The concepts that the best passages for a question hold and that lead on from there."""
        flavour = replace(FLAVOURS[DEFAULT_FLAVOUR], concepts=min(nodes, MAX_NODES))
        request = SearchRequest(query, DEFAULT_FLAVOUR, filter=within)
        vector = (await workspace.embedding.embed([query], role="query"))[0]
        async with self._database.snapshot(workspace.ref.tenant_id) as session:
            allowed = await resolve_filter(session, workspace, request, Stopwatch())
            legs = await _search_legs(session, workspace, request, vector, Stopwatch(), allowed)
            seeds = await _load(session, workspace.ref, legs.fused, request, flavour.seeds)
            weights = seed_weights(legs.fused, [seed.passage_id for seed in seeds])
            question = _question(query, legs)
            starts = await load_seeds(session, workspace.ref, list(weights))
            activations = activate(question, list(starts.values()), weights, flavour)
            keys = [activation.key for activation in activations]
            postings = await load_postings(session, workspace.ref, keys, max_df=flavour.max_df, allowed=allowed)
            ids = {passage_id for found in postings.values() for passage_id, _ in found}
            trusted = await trusted_ids(session, workspace.ref, ids, engine="lazy")
        known = trusted_postings(postings, trusted, flavour.max_df)
        visits = choose(activations, known, legs.lexical.corpus_passages, flavour, set())
        scored = [replace(seed, score=legs.fused[seed.passage_id]) for seed in seeds]
        return draw(scored, visits, known, question.concepts)

    async def _search(
        self, workspace: EngineWorkspace, request: SearchRequest, flavour: Flavour | None
    ) -> SearchResult:
        clock = Stopwatch()
        with clock.stage("embedding"):
            query = await asked("vectors", lambda: embed_query(workspace, request.query), None)
        async with self._database.snapshot(workspace.ref.tenant_id) as session:
            workspace = await _as_seen(session, workspace)
            allowed = await resolve_filter(session, workspace, request, clock)
            if allowed is not None and not allowed.version_ids:
                note = await nothing_allowed(session, workspace.ref, request.filter, "lazy")
                return SearchResult(
                    (),
                    stage_ms=clock.stages,
                    notes=(note,),
                    withheld=allowed.withheld,
                    details=unsearched(workspace),
                )
            legs = await _search_legs(session, workspace, request, query, clock, allowed)
            trail, scores = None, legs.fused
            if flavour is not None:
                walk = partial(self._walk, session, workspace, request, legs, flavour, allowed)
                with clock.stage("graph"):
                    trail = await leg("concepts", walk, None, session=session)
            if trail is not None:
                scores = final_scores(trail.plain, trail.walk.masses, trail.seeds)
            wanted = (request.top_k or DEFAULT_TOP_K) if flavour is None else flavour.returned
            with clock.stage("passages"):
                found = await _load(session, workspace.ref, scores, request, wanted)
        sources = sources_of(legs, trail, {passage.passage_id for passage in found})
        passages = tuple(
            replace(passage, score=scores[passage.passage_id], sources=sources[passage.passage_id]) for passage in found
        )
        return SearchResult(
            passages,
            stage_ms=clock.stages,
            notes=() if passages else ("No passage of the workspace matches the question.",),
            withheld=withheld_of(legs, wanted) if allowed is None else allowed.withheld,
            details=explain(legs, trail, [passage.passage_id for passage in passages], workspace.corpus_version),
        )

    async def _walk(
        self,
        session: TenantSession,
        workspace: EngineWorkspace,
        request: SearchRequest,
        legs: Legs,
        flavour: Flavour,
        allowed: Allowed | None,
    ) -> Trail:
        """From the seeds over their concepts to the passages that share them, as many hops as the flavour has."""
        question = _question(request.query, legs)
        concepts = query_concepts(request.query)
        named = await _named(session, workspace, request, concepts, allowed)
        plain = lift_named(legs.fused, named)
        trail = Trail(flavour, concepts, named, plain, list(plain)[: flavour.seeds])
        weights = seed_weights(plain, trail.seeds)
        for _ in range(flavour.hops if trail.seeds else 0):
            starts = await load_seeds(session, workspace.ref, list(weights))
            activations = activate(question, [starts[start] for start in weights if start in starts], weights, flavour)
            postings = await self._postings(session, workspace, request, activations, flavour, trail, allowed)
            used = {visit.key for visit in trail.walk.visits}
            expand(trail.walk, choose(activations, postings, legs.lexical.corpus_passages, flavour, used), postings)
            weights = next_front(trail.walk, plain, trail.seeds)
        if trail.walk.masses:
            await _weigh_rest(session, workspace, question, trail)
        return trail

    async def _postings(
        self,
        session: TenantSession,
        workspace: EngineWorkspace,
        request: SearchRequest,
        activations: Sequence[Activation],
        flavour: Flavour,
        trail: Trail,
        allowed: Allowed | None,
    ) -> Postings:
        """Of passages that the answer may use only: what others hold must not lead anywhere, nor be told as a reason."""
        ref, version = workspace.ref, workspace.corpus_version
        keys = [activation.key for activation in activations]
        trail.probed += len(keys)
        if allowed is not None:
            return await load_postings(session, ref, keys, max_df=flavour.max_df, allowed=allowed)
        scope = None if version is None else (ref.tenant_id, ref.number, version, flavour.max_df)
        postings, remembered = await postings_through(
            self._cache.postings, scope, keys, partial(load_postings, session, ref, max_df=flavour.max_df)
        )
        trail.remembered += remembered
        untrusted = await self._untrusted(session, workspace, include_partial=request.include_partial)
        return without(postings, untrusted, flavour.max_df) if untrusted else postings

    async def _untrusted(
        self, session: TenantSession, workspace: EngineWorkspace, *, include_partial: bool
    ) -> frozenset[int]:
        """Remembered with the postings, by the same rule."""
        ref, version = workspace.ref, workspace.corpus_version
        key = ("untrusted", ref.tenant_id, ref.number, version, include_partial)
        found = self._cache.untrusted.find(key) if version is not None else None
        if found is None:
            found = await load_untrusted(session, ref, include_partial=include_partial)
            if version is not None:
                self._cache.untrusted.put(key, found, 100 * len(found))
        return found


async def _as_seen(session: TenantSession, workspace: EngineWorkspace) -> EngineWorkspace:
    """With the corpus version of the session's snapshot: a document may have come or gone since the workspace was opened."""
    if workspace.corpus_version is None:
        return workspace
    return replace(workspace, corpus_version=await load_corpus_version(session, workspace.ref))


async def resolve_filter(
    session: TenantSession, workspace: EngineWorkspace, request: SearchRequest, clock: Stopwatch
) -> Allowed | None:
    """What the request's filter lets through; None without a filter."""
    if request.filter == NO_FILTER:
        return None
    with clock.stage("filter"):
        return await resolve(
            session, workspace.ref, request.filter, engine="lazy", include_partial=request.include_partial
        )


async def embed_query(workspace: EngineWorkspace, query: str) -> Vectors | None:
    """The question's vector by the workspace's model, of its dimension. Raises what the model raises."""
    vector: Vectors = (await workspace.embedding.embed([query], role="query"))[0]
    return vector


async def _search_legs(
    session: TenantSession,
    workspace: EngineWorkspace,
    request: SearchRequest,
    query: Vectors | None,
    clock: Stopwatch,
    allowed: Allowed | None = None,
) -> Legs:
    """Without `query` the vectors are left out."""

    async def terms() -> LexicalResult:
        return await search_terms(
            session,
            workspace.ref,
            request.query,
            LEG_SIZE,
            added=request.added_terms,
            include_partial=request.include_partial,
            allowed=allowed,
        )

    async def vectors(query: Vectors) -> Ranking:
        return await PassageVectors(workspace.vector_suffix).nearest(
            session,
            workspace.ref,
            query,
            LEG_SIZE,
            rows=lexical.corpus_passages,
            include_partial=request.include_partial,
            allowed=allowed,
        )

    with clock.stage("terms"):
        lexical = await leg("bm25", terms, LexicalResult(), session=session)
    with clock.stage("vectors"):
        nothing = Ranking()
        dense = nothing if query is None else await leg("vectors", lambda: vectors(query), nothing, session=session)
    return fuse(lexical, dense)


def _question(query: str, legs: Legs) -> Question:
    return Question(legs.lexical.idf, frozenset(concept.key for concept in query_concepts(query)))


async def _named(
    session: TenantSession,
    workspace: EngineWorkspace,
    request: SearchRequest,
    concepts: Sequence[Concept],
    allowed: Allowed | None,
) -> set[int]:
    keys = naming_keys(concepts)
    if not keys:
        return set()
    postings = await load_named(
        session,
        workspace.ref,
        keys,
        most=NAMED_PASSAGES,
        include_partial=request.include_partial,
        allowed=allowed,
    )
    return named_passages(postings)


async def _weigh_rest(session: TenantSession, workspace: EngineWorkspace, question: Question, trail: Trail) -> None:
    term_of = {concept_key(term): term for term in rest_terms(question)}
    first = trail.seeds[0]
    found = await load_held(session, workspace.ref, [first, *rest_passages(trail.walk)], list(term_of))
    held = {passage_id: frozenset(term_of[key] for key in keys) for passage_id, keys in found.items()}
    weigh_rest(trail.walk, question, first, held)


async def _load(
    session: TenantSession, ref: WorkspaceRef, scores: Mapping[int, float], request: SearchRequest, wanted: int
) -> list[PassageEvidence]:
    """The best passages; the graph may have reached some that are not trusted, which are skipped."""
    found: list[PassageEvidence] = []
    ids = list(scores)
    step = 2 * wanted
    for start in range(0, len(ids), step):
        found += await load_evidence(
            session, ref, ids[start : start + step], engine="lazy", include_partial=request.include_partial
        )
        if len(found) >= wanted:
            break
    return found[:wanted]


def _milliseconds_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
