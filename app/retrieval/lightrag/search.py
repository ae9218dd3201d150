"""Answers the five graph modes with evidence: LightRAG finds, we keep what is trusted and cite it by passage.

LightRAG is asked for structured data only, never for its cached answers. It knows no versions, so what it finds is
judged afterwards, and asked for again with wider limits where too little is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

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
from app.retrieval.lightrag.evidence import entity_evidence, relation_evidence, within_tokens
from app.retrieval.lightrag.fusion import Leg, fuse
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.models import shared_query_vectors
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.stages import Stages
from app.retrieval.lightrag.support_store import SupportStore
from app.retrieval.store.passages import load_evidence, passages_of_chunks
from app.retrieval.store.postings import search_terms
from app.retrieval.store.vectors import PassageVectors
from app.text.keywords import extract_keywords

MIN_CHUNKS = 20
# Each round asks for four times as much; two of them reach past the remains of a large purge.
WIDER = 4
MAX_ROUNDS = 3
# LightRAG would cut chunks by the room its own prompt leaves; the caller's budget is applied to what is trusted.
NO_BUDGET = 10**9
WORD_HITS = 100
Chunk = tuple[UUID, int]


@dataclass(frozen=True)
class Found:
    """What LightRAG found, best first."""

    entities: Sequence[dict[str, Any]] = ()
    relations: Sequence[dict[str, Any]] = ()
    chunks: Sequence[Chunk] = ()


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

    async def search(self, workspace: EngineWorkspace, request: SearchRequest) -> SearchResult:
        stages = Stages()
        notes: list[str] = []
        # LightRAG embeds the question without its outer spaces.
        request = replace(request, query=request.query.strip())
        with shared_query_vectors() as vectors, inside(workspace.ref):
            async with self._instances.use(workspace) as instance:
                with stages.measure("keywords"):
                    keywords = await self._resolved(workspace, await _keywords(instance.rag, request))
                judged = await self._retrieve(instance.rag, workspace, request, keywords, stages, notes)
            with stages.measure("rank"):
                ranked = await self._rank(workspace, request, judged, vectors)
        return _result(request, judged, ranked, keywords, stages, notes)

    async def _resolved(self, workspace: EngineWorkspace, keywords: Keywords) -> Keywords:
        """A keyword that is an alias asks for what it means."""
        words = dict.fromkeys((*keywords.high, *keywords.low))
        meant = await AliasStore(self._engine, workspace.ref).meant_by_alias(words)
        high, low = (tuple(dict.fromkeys(meant.get(w, w) for w in part)) for part in (keywords.high, keywords.low))
        return Keywords(high, low) if meant else keywords

    async def _retrieve(
        self,
        rag: Any,
        workspace: EngineWorkspace,
        request: SearchRequest,
        keywords: Keywords,
        stages: Stages,
        notes: list[str],
    ) -> Judged:
        judged = Judged()
        for attempt in range(MAX_ROUNDS):
            factor = WIDER**attempt
            with stages.measure("retrieve"):
                found = await _ask(rag, request, keywords, factor)
                if not found.chunks:
                    found = replace(found, chunks=await _nearest_chunks(rag, request, factor))
                    if attempt == 0:
                        notes.append("the graph gave no text for this question; chunks were found by their vectors")
            with stages.measure("trust"):
                judged = await self._judge(workspace, request, found)
            if not judged.withheld or _is_enough(request, judged):
                break
        return judged

    async def _judge(self, workspace: EngineWorkspace, request: SearchRequest, found: Found) -> Judged:
        store = SupportStore(self._engine, workspace.ref, include_partial=request.include_partial)
        entities = await entity_evidence(store, found.entities)
        relations = await relation_evidence(store, found.relations)
        async with self._database.tenant(workspace.ref.tenant_id) as session:
            passages = await passages_of_chunks(
                session, workspace.ref, found.chunks, engine="graph", include_partial=request.include_partial
            )
        kept = {chunk: passages[chunk] for chunk in found.chunks if chunk in passages}
        wanted = len(found.entities) + len(found.relations) + len(found.chunks)
        return Judged(entities, relations, kept, wanted - len(entities) - len(relations) - len(kept))

    async def _rank(
        self, workspace: EngineWorkspace, request: SearchRequest, judged: Judged, vectors: dict[str, Any]
    ) -> list[PassageEvidence]:
        """The passages of the chunks by three ranks: their chunk's, their own nearness, and their words.

        Only `mix`, and a mode that found nothing, takes passages that are found by their words alone.
        """
        passages = {found.passage_id: found for group in judged.passages.values() for found in group}
        by_chunk = [
            (found.passage_id, rank, None) for rank, group in enumerate(judged.passages.values(), 1) for found in group
        ]
        query = vectors.get(request.query)
        async with self._database.tenant(workspace.ref.tenant_id) as session:
            near = []
            if query is not None and query.any():
                near = await PassageVectors(workspace.vector_suffix).similarities(
                    session, workspace.ref, query, list(passages)
                )
            lexical = await search_terms(
                session, workspace.ref, request.query, WORD_HITS, include_partial=request.include_partial
            )
            if request.mode == "mix" or not passages:
                unseen = [hit.passage_id for hit in lexical.hits if hit.passage_id not in passages]
                for found in await load_evidence(
                    session, workspace.ref, unseen, engine="graph", include_partial=request.include_partial
                ):
                    passages[found.passage_id] = found
        legs = [Leg("chunks", by_chunk), Leg.of_hits("vectors", near), Leg.of_hits("words", lexical.hits)]
        return fuse(passages, legs)


async def _keywords(rag: Any, request: SearchRequest) -> Keywords:
    """Neither list comes back empty, or a whole branch of the search would silently not run."""
    if request.mode == "naive":
        return Keywords()
    given = request.keywords
    if given == "llm":
        config = rag._build_global_config()
        high, low = await extract_keywords_only(request.query, QueryParam(mode=request.mode), config, None)
        given = Keywords(tuple(high), tuple(low))
    if given is not None and given.high and given.low:
        return given
    built_in = extract_keywords(request.query)
    if given is None:
        return Keywords(built_in.high, built_in.low)
    return Keywords(given.high or given.low or built_in.high, given.low or given.high or built_in.low)


async def _ask(rag: Any, request: SearchRequest, keywords: Keywords, factor: int) -> Found:
    try:
        validate_rag_query(request.query)
    except QueryValidationError:
        return Found()
    answer = await rag.aquery_data(
        request.query,
        QueryParam(
            mode=request.mode,
            only_need_context=True,
            top_k=request.graph_top_k * factor,
            chunk_top_k=_chunks_wanted(request, factor),
            max_entity_tokens=request.max_entity_tokens * factor,
            max_relation_tokens=request.max_relation_tokens * factor,
            max_total_tokens=NO_BUDGET,
            hl_keywords=list(keywords.high),
            ll_keywords=list(keywords.low),
            enable_rerank=False,
        ),
    )
    # Without a result there is no `data`, or nothing at all (facts F22).
    data = answer.get("data") or {}
    chunks = [chunk_of(row["chunk_id"]) for row in data.get("chunks", ())]
    return Found(
        data.get("entities", ()), data.get("relationships", ()), [chunk for chunk in chunks if chunk is not None]
    )


async def _nearest_chunks(rag: Any, request: SearchRequest, factor: int) -> list[Chunk]:
    """What `naive` would find, without LightRAG's demands on the question's length."""
    vector = (await rag.embedding_func([request.query], context="query"))[0]
    if not vector.any():
        return []
    rows = await rag.chunks_vdb.query(request.query, top_k=_chunks_wanted(request, factor), query_embedding=vector)
    chunks = [chunk_of(row["id"]) for row in rows]
    return [chunk for chunk in chunks if chunk is not None]


def chunk_of(engine_id: str) -> Chunk | None:
    """(version, ordinal) of a chunk's id in the engine; None for one that is not ours."""
    version, _, ordinal = engine_id.rpartition("-chunk-")
    try:
        return UUID(version), int(ordinal)
    except ValueError:
        return None


def _chunks_wanted(request: SearchRequest, factor: int) -> int:
    return max(MIN_CHUNKS, 2 * (request.top_k or DEFAULT_TOP_K)) * factor


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
