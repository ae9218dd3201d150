"""Answers the five graph modes with evidence: what LightRAG would find, as far as it is trusted, cited by passage.

The graph knows no versions, so what is found in it is judged afterwards, and looked for again with wider limits where
too little is left.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import asyncpg
from lightrag import QueryParam
from lightrag.operate import extract_keywords_only
from lightrag.query_validation import QueryValidationError, validate_rag_query

from app.db.session import Database
from app.retrieval.budgets import DEFAULT_TOP_K
from app.retrieval.contract import (
    EngineWorkspace,
    Keywords,
    PassageEvidence,
    SearchRequest,
    SearchResult,
)
from app.retrieval.lightrag.alias_store import AliasStore
from app.retrieval.lightrag.evidence import graph_evidence, within_tokens
from app.retrieval.lightrag.finding import Found, Probes, Wanted, find
from app.retrieval.lightrag.fusion import Leg, fuse
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.pool import LOST_CONNECTION, EngineDatabase, inside
from app.retrieval.lightrag.search_store import GraphReader
from app.retrieval.lightrag.stages import Stages
from app.retrieval.lightrag.support_store import SupportStore
from app.retrieval.store.passages import load_evidence, passages_of_chunks
from app.retrieval.store.postings import LexicalResult, search_terms
from app.retrieval.store.vectors import PassageVectors
from app.text.keywords import extract_keywords
from app.text.tokens import count_again

MIN_CHUNKS = 20
# Each round asks for four times as much; two of them reach past the remains of a large purge.
WIDER = 4
MAX_ROUNDS = 3
WORD_HITS = 100
# As many as one question uses at once.
WARM_CONNECTIONS = 3
Chunk = tuple[UUID, int]


@dataclass
class Judged:
    """What of it may be used. `passages` by chunk, in the chunks' order."""

    entities: list[Any] = field(default_factory=list)
    relations: list[Any] = field(default_factory=list)
    passages: dict[Chunk, list[PassageEvidence]] = field(default_factory=dict)
    withheld: int = 0


class GraphSearch:
    """`Search` over LightRAG."""

    def __init__(self, engine: EngineDatabase, database: Database, instances: InstancePool) -> None:
        self._engine = engine
        self._database = database
        self._instances = instances

    async def warm(self) -> None:
        """Load what the first question would wait for, and open connections; a database that is away, or not made yet, is not missed."""
        await asyncio.to_thread(_load_vocabularies)
        with suppress(*LOST_CONNECTION, asyncpg.PostgresError):
            await asyncio.gather(*(self._engine.fetch("SELECT 1") for _ in range(WARM_CONNECTIONS)))

    async def search(self, workspace: EngineWorkspace, request: SearchRequest) -> SearchResult:
        stages = Stages()
        notes: list[str] = []
        request = replace(request, query=request.query.strip())
        with inside(workspace.ref):
            await self._instances.check(workspace)
            words = asyncio.ensure_future(self._words(workspace, request))
            try:
                with stages.measure("keywords"):
                    keywords = await self._keywords(workspace, request)
                with stages.measure("retrieve"):
                    probes = await _probes(workspace, request, keywords)
                judged = await self._retrieve(workspace, request, probes, stages, notes)
                with stages.measure("rank"):
                    ranked = await self._rank(workspace, request, judged, probes, await words)
            finally:
                words.cancel()
                await asyncio.gather(words, return_exceptions=True)
        return _result(request, judged, ranked, keywords, stages, notes)

    async def _keywords(self, workspace: EngineWorkspace, request: SearchRequest) -> Keywords:
        """Neither list comes back empty, or a whole branch of the search would silently not run."""
        if request.mode == "naive":
            return Keywords()
        given = request.keywords
        if given == "llm":
            async with self._instances.use(workspace) as instance:
                given = await _asked_keywords(instance.rag, request)
        return await self._resolved(workspace, _filled(given, request.query))

    async def _resolved(self, workspace: EngineWorkspace, keywords: Keywords) -> Keywords:
        """A keyword that is an alias asks for what it means."""
        words = dict.fromkeys((*keywords.high, *keywords.low))
        meant = await AliasStore(self._engine, workspace.ref).meant_by_alias(words)
        high, low = (tuple(dict.fromkeys(meant.get(w, w) for w in part)) for part in (keywords.high, keywords.low))
        return Keywords(high, low) if meant else keywords

    async def _words(self, workspace: EngineWorkspace, request: SearchRequest) -> LexicalResult:
        async with self._database.tenant(workspace.ref.tenant_id) as session:
            return await search_terms(
                session, workspace.ref, request.query, WORD_HITS, include_partial=request.include_partial
            )

    async def _retrieve(
        self,
        workspace: EngineWorkspace,
        request: SearchRequest,
        probes: Probes,
        stages: Stages,
        notes: list[str],
    ) -> Judged:
        reader = GraphReader(self._engine, workspace.ref, workspace.vector_suffix)
        judged = Judged()
        for attempt in range(MAX_ROUNDS):
            wanted = _wanted(request, WIDER**attempt)
            with stages.measure("retrieve"):
                found = await find(reader, request.mode, probes, wanted)
                if not found.chunks:
                    found = replace(found, chunks=await reader.nearest_chunks(probes.question, wanted.chunks))
                    if attempt == 0:
                        notes.append("the graph gave no text for this question; chunks were found by their vectors")
            with stages.measure("trust"):
                judged = await self._judge(workspace, request, found)
            if not judged.withheld or _is_enough(request, judged):
                break
        return judged

    async def _judge(self, workspace: EngineWorkspace, request: SearchRequest, found: Found) -> Judged:
        store = SupportStore(self._engine, workspace.ref, include_partial=request.include_partial)
        chunks = [chunk for chunk in map(chunk_of, found.chunks) if chunk is not None]
        (entities, relations), passages = await asyncio.gather(
            graph_evidence(store, found.entities, found.relations), self._passages(workspace, request, chunks)
        )
        kept = {chunk: passages[chunk] for chunk in chunks if chunk in passages}
        wanted = len(found.entities) + len(found.relations) + len(chunks)
        return Judged(entities, relations, kept, wanted - len(entities) - len(relations) - len(kept))

    async def _passages(
        self, workspace: EngineWorkspace, request: SearchRequest, chunks: Sequence[Chunk]
    ) -> dict[Chunk, list[PassageEvidence]]:
        async with self._database.tenant(workspace.ref.tenant_id) as session:
            return await passages_of_chunks(
                session, workspace.ref, chunks, engine="graph", include_partial=request.include_partial
            )

    async def _rank(
        self,
        workspace: EngineWorkspace,
        request: SearchRequest,
        judged: Judged,
        probes: Probes,
        lexical: LexicalResult,
    ) -> list[PassageEvidence]:
        """The passages of the chunks by three ranks: their chunk's, their own nearness, and their words.

        Only `mix`, and a mode that found nothing, takes passages that are found by their words alone.
        """
        passages = {found.passage_id: found for group in judged.passages.values() for found in group}
        by_chunk = [
            (found.passage_id, rank, None) for rank, group in enumerate(judged.passages.values(), 1) for found in group
        ]
        unseen = [hit.passage_id for hit in lexical.hits if hit.passage_id not in passages]
        async with self._database.tenant(workspace.ref.tenant_id) as session:
            near = []
            if probes.question.any() and passages:
                near = await PassageVectors(workspace.vector_suffix).similarities(
                    session, workspace.ref, probes.question, list(passages)
                )
            if unseen and (request.mode == "mix" or not passages):
                for found in await load_evidence(
                    session, workspace.ref, unseen, engine="graph", include_partial=request.include_partial
                ):
                    passages[found.passage_id] = found
        legs = [Leg("chunks", by_chunk), Leg.of_hits("vectors", near), Leg.of_hits("words", lexical.hits)]
        return fuse(passages, legs)


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
        top_k=request.graph_top_k * factor,
        chunks=max(MIN_CHUNKS, 2 * (request.top_k or DEFAULT_TOP_K)) * factor,
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
    if not (judged.entities or judged.relations or passages):
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
