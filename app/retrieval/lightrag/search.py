"""Answers the five graph modes with evidence: what LightRAG would find, as far as it is trusted, cited by passage.

The graph knows no versions, so what is found in it is judged afterwards, and looked for again with wider limits where
too little is left. Two roles read, on a connection each, but both in one snapshot: what commits meanwhile is seen as a
whole or not at all.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from uuid import UUID

import asyncpg
from lightrag import QueryParam
from lightrag.operate import extract_keywords_only
from lightrag.query_validation import QueryValidationError, validate_rag_query

from app.db.session import Database, TenantSession
from app.providers.contract import Vectors
from app.retrieval.budgets import DEFAULT_TOP_K
from app.retrieval.contract import (
    EngineWorkspace,
    Keywords,
    PassageEvidence,
    SearchRequest,
    SearchResult,
)
from app.retrieval.deadline import asked, give_up, leg
from app.retrieval.lightrag.alias_store import AliasStore
from app.retrieval.lightrag.evidence import composed, within_tokens
from app.retrieval.lightrag.finding import Found, Probes, Wanted, find
from app.retrieval.lightrag.fusion import Leg, fuse
from app.retrieval.lightrag.graphs import graph_reader, support_store
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.long_name_store import LongNames
from app.retrieval.lightrag.pool import LOST_CONNECTION, EngineDatabase, inside
from app.retrieval.lightrag.reads import Reads, together
from app.retrieval.lightrag.stages import Stages
from app.retrieval.once import once
from app.retrieval.store.allowed import Allowed, nothing_allowed, resolve
from app.retrieval.store.hits import Hit
from app.retrieval.store.passages import load_evidence, passages_of_chunks
from app.retrieval.store.postings import LexicalResult, search_terms
from app.retrieval.store.trust import REASONS, reasons_of
from app.retrieval.store.vectors import PassageVectors
from app.text.keywords import extract_keywords
from app.text.tokens import count_again

MIN_CHUNKS = 20
# Each round asks for four times as much.
WIDER = 4
# Entities, relations or chunks that a search looks at before it makes do with what it has.
MOST = 10_000
# Of versions whose rows are gone while the graph still names them.
GONE = "deleting"
WORD_HITS = 100
Chunk = tuple[UUID, int]


@dataclass
class Judged:
    """What of it may be used. `passages` by chunk, in the chunks' order; `found` counts what there was to judge; not
    `is_allowed`: no document meets the filter."""

    entities: list[Any] = field(default_factory=list)
    relations: list[Any] = field(default_factory=list)
    passages: dict[Chunk, list[PassageEvidence]] = field(default_factory=dict)
    withheld: dict[str, int] = field(default_factory=dict)
    found: tuple[int, int, int] = (0, 0, 0)
    is_allowed: bool = True


class GraphSearch:
    """`Search` over LightRAG."""

    def __init__(self, engine: EngineDatabase, database: Database, instances: InstancePool) -> None:
        self._engine = engine
        self._database = database
        self._instances = instances

    async def warm(self) -> None:
        """Load what the first question would wait for, and open a connection; a database that is away, or not made yet, is not missed."""
        await asyncio.to_thread(_load_vocabularies)
        with suppress(*LOST_CONNECTION, asyncpg.PostgresError):
            await self._engine.fetch("SELECT 1")

    async def search(self, workspace: EngineWorkspace, request: SearchRequest) -> SearchResult:
        stages = Stages()
        notes: list[str] = []
        request = replace(request, query=request.query.strip())
        with inside(workspace.ref):
            await self._instances.check(workspace)
            with stages.measure("keywords"):
                keywords = await self._keywords(workspace, request, notes)
            with stages.measure("retrieve"):
                probes = await asked("vectors", lambda: _probes(workspace, request, keywords), None)
            async with self._view(workspace, request) as view:
                judged = await view.retrieve(probes, stages, notes)
                judged.withheld = view.withheld_of(judged)
                with stages.measure("rank"):
                    ranked = await view.rank(judged, probes)
        return _result(request, judged, ranked, keywords, stages, notes)

    async def _keywords(self, workspace: EngineWorkspace, request: SearchRequest, notes: list[str]) -> Keywords:
        """Neither list comes back empty, or a whole branch of the search would silently not run."""
        if request.mode == "naive":
            return Keywords()
        given = request.keywords
        if given == "llm":
            found: Keywords = await asked(
                "keywords", lambda: once("keywords", lambda: self._asked(workspace, request)), Keywords()
            )
            given = found
            if not (given.high or given.low):
                notes.append("the model gave no keywords; they were extracted by rules")
        keywords = _filled(given, request.query)
        return await self._resolved(workspace, Keywords(keywords.high, (*keywords.low, *request.added_terms)))

    async def _asked(self, workspace: EngineWorkspace, request: SearchRequest) -> Keywords:
        async with self._instances.use(workspace) as instance:
            return await _asked_keywords(instance.rag, request)

    async def _resolved(self, workspace: EngineWorkspace, keywords: Keywords) -> Keywords:
        """A keyword that is an alias asks for what it means."""
        words = dict.fromkeys((*keywords.high, *keywords.low))
        meant = await AliasStore(self._engine, workspace.ref).meant_by_alias(words)
        high, low = (tuple(dict.fromkeys(meant.get(w, w) for w in part)) for part in (keywords.high, keywords.low))
        return Keywords(high, low) if meant else keywords

    @asynccontextmanager
    async def _view(self, workspace: EngineWorkspace, request: SearchRequest) -> AsyncIterator["_View"]:
        """Open after the models were asked: it holds two transactions."""
        async with (
            self._database.snapshot(workspace.ref.tenant_id, share=True) as session,
            self._engine.snapshot(session.snapshot) as reads,
        ):
            allowed = await resolve(
                session, workspace.ref, request.filter, engine="graph", include_partial=request.include_partial
            )
            yield _View(workspace, request, session, reads, allowed)


class _View:
    """One snapshot of a workspace, as a search looks at it: `session` sees our tables, `reads` the engine's."""

    def __init__(
        self,
        workspace: EngineWorkspace,
        request: SearchRequest,
        session: TenantSession,
        reads: Reads,
        allowed: Allowed | None,
    ) -> None:
        self._workspace = workspace
        self._ref = workspace.ref
        self._request = request
        self._session = session
        self._allowed = allowed
        versions = None if allowed is None else allowed.version_ids
        self._graph = graph_reader(reads, workspace.ref, workspace.vector_suffix, allowed=versions)
        self._support = support_store(reads, workspace.ref, include_partial=request.include_partial, allowed=versions)
        self._long_names = LongNames(reads, workspace.ref)
        self._lexical = LexicalResult()

    async def retrieve(self, probes: Probes | None, stages: Stages, notes: list[str]) -> Judged:
        """Looks further as long as something is withheld and too little is left, until there is no more.

        Without probes only by words. What the graph's connection was asked too late has spoilt it for this search.
        """
        if self._allowed is not None and not self._allowed.version_ids:
            notes.append(await nothing_allowed(self._session, self._ref, self._request.filter, "graph"))
            return Judged(is_allowed=False)
        if probes is None:
            give_up("graph")
            self._lexical = await self._words_in_time()
            return Judged()
        judged = Judged()
        for attempt in count():
            wanted = _wanted(self._request, WIDER**attempt)
            with stages.measure("retrieve"):
                if attempt == 0:
                    found, self._lexical = await together(self._find_in_time(probes, wanted), self._words_in_time())
                else:
                    found = await self._find_in_time(probes, wanted)
                if found is None:
                    return judged
                if not found.chunks and attempt == 0:
                    notes.append("the graph gave no text for this question; chunks were found by their vectors")
                if not found.chunks or self._allowed is not None:
                    near = await self._graph.nearest_chunks(probes.question, wanted.chunks)
                    found = replace(found, chunks=list(dict.fromkeys([*found.chunks, *near]))[: wanted.chunks])
            before = judged.found
            with stages.measure("trust"):
                judged = await self._judge(found)
            is_exhausted = judged.found == before or max(wanted.top_k, wanted.chunks) >= MOST
            if not judged.withheld or _is_enough(self._request, judged) or is_exhausted:
                break
        return judged

    def withheld_of(self, judged: Judged) -> dict[str, int]:
        """By reason. A search under a filter never meets what may not be used; documents that meet the filter are told."""
        return judged.withheld if self._allowed is None else dict(self._allowed.withheld)

    async def _find_in_time(self, probes: Probes, wanted: Wanted) -> Found | None:
        return await leg("graph", lambda: self._find(probes, wanted), None)

    async def _words_in_time(self) -> LexicalResult:
        return await leg("words", self._words, LexicalResult(), session=self._session)

    async def _find(self, probes: Probes, wanted: Wanted) -> Found:
        return await find(self._graph, self._support, self._request.mode, probes, wanted)

    async def _words(self) -> LexicalResult:
        return await search_terms(
            self._session,
            self._ref,
            self._request.query,
            WORD_HITS,
            added=self._request.added_terms,
            include_partial=self._request.include_partial,
            allowed=self._allowed,
        )

    async def _judge(self, found: Found) -> Judged:
        chunks = [chunk for chunk in map(chunk_of, found.chunks) if chunk is not None]
        (entities, relations), passages = await together(
            composed(self._support, found.support, found.entities, found.relations),
            passages_of_chunks(
                self._session, self._ref, chunks, engine="graph", include_partial=self._request.include_partial
            ),
        )
        entities, relations = await self._long_names.shown((entities, relations))
        kept = {chunk: passages[chunk] for chunk in chunks if chunk in passages}
        pieces = [*found.support.withheld.values(), *((version,) for version, _ in set(chunks) - kept.keys())]
        counts = (len(found.entities), len(found.relations), len(chunks))
        return Judged(entities, relations, kept, await self._reasons(pieces), counts)

    async def _reasons(self, pieces: Sequence[Sequence[UUID]]) -> dict[str, int]:
        """How many pieces are withheld for which reason; of several versions behind one the first of `REASONS` counts."""
        if not pieces:
            return {}
        versions = {version for behind in pieces for version in behind}
        reasons = await reasons_of(
            self._session, versions, engine="graph", include_partial=self._request.include_partial
        )
        counts = Counter(
            min((reasons.get(version, GONE) for version in behind), key=_place, default=GONE) for behind in pieces
        )
        return {reason: counts[reason] for reason in sorted(counts, key=_place)}

    async def rank(self, judged: Judged, probes: Probes | None) -> list[PassageEvidence]:
        """The passages of the chunks by three ranks: their chunk's, their own nearness, and their words.

        Only `mix`, and a mode that found nothing, takes passages that are found by their words alone.
        """
        passages = {found.passage_id: found for group in judged.passages.values() for found in group}
        by_chunk = [
            (found.passage_id, rank, None) for rank, group in enumerate(judged.passages.values(), 1) for found in group
        ]
        hits = self._lexical.hits
        unseen = [hit.passage_id for hit in hits if hit.passage_id not in passages]
        near: Sequence[Hit] = ()
        if probes is not None and probes.question.any() and passages:
            near = await leg(
                "vectors", lambda: self._similar(probes.question, list(passages)), [], session=self._session
            )
        if unseen and (self._request.mode == "mix" or not passages):
            for found in await load_evidence(
                self._session, self._ref, unseen, engine="graph", include_partial=self._request.include_partial
            ):
                passages[found.passage_id] = found
        legs = [Leg("chunks", by_chunk), Leg.of_hits("vectors", near), Leg.of_hits("words", hits)]
        return fuse(passages, legs)

    async def _similar(self, question: Vectors, passage_ids: list[int]) -> list[Hit]:
        vectors = PassageVectors(self._workspace.vector_suffix)
        return await vectors.similarities(self._session, self._ref, question, passage_ids)


def _place(reason: str) -> int:
    return REASONS.index(reason) if reason in REASONS else len(REASONS)


def _load_vocabularies() -> None:
    count_again("Trellis")
    # Two languages: one is cut into words by a dictionary.
    extract_keywords("Who founded Trellis? 谁创立了它？")


async def _asked_keywords(rag: Any, request: SearchRequest) -> Keywords:
    config = rag._build_global_config()
    high, low = await extract_keywords_only(request.query, QueryParam(mode=request.mode), config, None)
    return Keywords(tuple(high), tuple(low))


def _filled(given: Keywords | None, query: str) -> Keywords:
    if given is not None and given.high and given.low:
        return given
    built_in = extract_keywords(query)
    if given is None:
        return Keywords(built_in.high, built_in.low)
    return Keywords(given.high or given.low or built_in.high, given.low or given.high or built_in.low)


async def _probes(workspace: EngineWorkspace, request: SearchRequest, keywords: Keywords) -> Probes:
    """One call of the embedding model for all that the mode asks with. A question too short for LightRAG asks alone."""
    texts = {"question": request.query}
    if _is_answerable(request.query):
        if request.mode in ("local", "hybrid", "mix") and keywords.low:
            texts["low"] = ", ".join(keywords.low)
        if request.mode in ("global", "hybrid", "mix") and keywords.high:
            texts["high"] = ", ".join(keywords.high)
    distinct = list(dict.fromkeys(texts.values()))
    vectors = dict(zip(distinct, await workspace.embedding.embed(distinct, role="query"), strict=True))
    return Probes(**{name: vectors[text] for name, text in texts.items()})


def _is_answerable(query: str) -> bool:
    try:
        validate_rag_query(query)
    except QueryValidationError:
        return False
    return True


def _wanted(request: SearchRequest, factor: int) -> Wanted:
    return Wanted(
        top_k=min(MOST, request.graph_top_k * factor),
        chunks=min(MOST, max(MIN_CHUNKS, 2 * (request.top_k or DEFAULT_TOP_K)) * factor),
        entity_tokens=request.max_entity_tokens * factor,
        relation_tokens=request.max_relation_tokens * factor,
    )


def chunk_of(engine_id: str) -> Chunk | None:
    """(version, ordinal) of a chunk's id in the engine; None for one that is not ours."""
    version, _, ordinal = engine_id.rpartition("-chunk-")
    try:
        return UUID(version), int(ordinal)
    except ValueError:
        return None


def _is_enough(request: SearchRequest, judged: Judged) -> bool:
    has_passages = sum(map(len, judged.passages.values())) >= (request.top_k or DEFAULT_TOP_K)
    if request.mode == "naive":
        return has_passages
    return has_passages and len(judged.entities) >= request.graph_top_k and len(judged.relations) >= request.graph_top_k


def _result(
    request: SearchRequest,
    judged: Judged,
    ranked: list[PassageEvidence],
    keywords: Keywords,
    stages: Stages,
    notes: list[str],
) -> SearchResult:
    entities = within_tokens(
        judged.entities[: request.graph_top_k],
        lambda found: f"{found.name} {found.type} {found.description}",
        request.max_entity_tokens,
    )
    relations = within_tokens(
        judged.relations[: request.graph_top_k],
        lambda found: f"{found.source} {found.target} {found.keywords} {found.description}",
        request.max_relation_tokens,
    )
    passages = ranked[: (request.top_k or DEFAULT_TOP_K)]
    if judged.is_allowed and not (judged.entities or judged.relations or passages):
        notes.append("nothing in the workspace matches this question")
    return SearchResult(
        passages=tuple(passages),
        entities=tuple(entities),
        relations=tuple(relations),
        stage_ms=stages.milliseconds,
        notes=tuple(notes),
        withheld=judged.withheld,
        details={"keywords": {"high": list(keywords.high), "low": list(keywords.low)}},
    )
