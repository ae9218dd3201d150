"""Why a document is in an answer or not: for each of its passages the legs that found it, its rank, and what cut it.

Nothing here looks into an engine: the question is asked as it would be, once more for all candidates, and in lazy modes
once more with the largest budgets, and the answers are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from uuid import UUID, uuid4

from app.db.base import TenantId, WorkspaceId
from app.domain.queries.context import Budgets, entity_line, relation_line
from app.domain.queries.deadlines import answered_within, missing_legs
from app.domain.queries.expansion import RememberedEmbedding, expand
from app.domain.queries.explaining_repository import ExplainedDocuments
from app.domain.queries.planning import Plan, Question
from app.domain.queries.reranking import CANDIDATES, returned_by
from app.domain.queries.service import QueryService
from app.domain.queries.theme_context import render
from app.domain.usage.booking import book_query
from app.providers.usage import meter_usage
from app.retrieval.budgets import LazyBudgets
from app.retrieval.contract import (
    LAZY_MODES,
    MODES,
    THEME_MODES,
    Engine,
    EngineWorkspace,
    EntityEvidence,
    PassageEvidence,
    RelationEvidence,
    Search,
    SearchRequest,
    SearchResult,
    Source,
)
from app.retrieval.once import asking_once
from app.retrieval.routing import Routing
from app.retrieval.store.allowed import resolve
from app.retrieval.store.trust import reasons_of
from app.text.tokens import count_again

Cut = Literal["not_trusted", "filtered", "not_found", "budget", "below_k", "rerank", "token_budget"]
# More than the legs of the lazy engine bring together, and than a graph lends.
ALL_CANDIDATES: Final = 1000
# As much as a request may ask for.
LARGEST: Final = LazyBudgets(relevance_budget=128, seed_k=32, max_concepts_per_chunk=40)
LEGS: Final[Mapping[Engine, tuple[str, ...]]] = {"lazy": ("bm25", "vectors"), "graph": ("chunks", "vectors", "words")}
WALK_LEGS: Final = ("names", "concepts")
THEME_LEGS: Final = ("themes",)


@dataclass(frozen=True)
class PassageFate:
    """`rank` is its place among all candidates (from 1); `cut` None: it is in the context."""

    passage_id: int
    ordinal: int
    found_by: tuple[Source, ...]
    rank: int | None
    cut: Cut | None


@dataclass(frozen=True)
class LegFate:
    """How many of the document's passages a leg found, and the best rank of them."""

    leg: str
    passages: int
    best_rank: int | None


@dataclass(frozen=True)
class GraphFate:
    """An entity, or a relation by both names, that the document speaks of and that was found."""

    names: tuple[str, ...]
    found_by: tuple[Source, ...]
    is_in_context: bool


@dataclass(frozen=True)
class Explanation:
    """`untrusted` says why the engine does not answer from the document, where it does not; `missing_legs` were not done in
    time, so that nothing is known of what they would have found."""

    query_id: UUID
    mode: str
    routing: Routing | None
    document_id: UUID
    version_id: UUID
    untrusted: str | None
    wanted: int
    candidates: int
    legs: tuple[LegFate, ...]
    passages: tuple[PassageFate, ...]
    entities: tuple[GraphFate, ...]
    relations: tuple[GraphFate, ...]
    missing_legs: tuple[str, ...] = ()


class QueryExplainer(QueryService):
    """Asks as `QueryService` does, and writes the ledger; the log of queries is for questions that were meant."""

    async def explain(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, question: Question, document_id: UUID
    ) -> Explanation:
        """What models are asked for they are asked for once. Raises as `ask` does, and DocumentNotFound."""
        with asking_once():
            async with answered_within(question.timeout_ms) as deadline:
                explanation = await self._explain(tenant_id, workspace_id, question, document_id)
            return replace(explanation, missing_legs=missing_legs(deadline))

    async def _explain(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, question: Question, document_id: UUID
    ) -> Explanation:
        _, search, workspace, plan, reranker = await self._open(tenant_id, workspace_id, question)
        workspace = replace(workspace, embedding=RememberedEmbedding(workspace.embedding))
        engine = MODES[plan.mode]
        async with self._database.snapshot(tenant_id) as session:
            document = await ExplainedDocuments(session).get(workspace_id, document_id, engine)
            reasons = await reasons_of(
                session, [document.version_id], engine=engine, include_partial=question.include_partial
            )
            allowed = await resolve(
                session, workspace.ref, plan.filter, engine=engine, include_partial=question.include_partial
            )
        untrusted = reasons.get(document.version_id)
        is_filtered = allowed is not None and document.version_id not in allowed.version_ids
        query_id = uuid4()
        with meter_usage() as meter:
            try:
                expansion = await expand(self._concepts, workspace, plan)
                request = plan.request(expansion.terms)
                found = (await self._find(search, workspace, request, reranker)).result
                every = await _all_candidates(search, workspace, request)
                largest = await _with_largest_budgets(search, workspace, request)
            finally:
                await book_query(self._database, tenant_id, workspace_id, query_id, meter)
        budgets = Budgets(question.max_entity_tokens, question.max_relation_tokens, question.max_total_tokens)
        context = render(plan.mode, found, budgets, count_again)
        judge = _Judge(found, every, largest, {passage.passage_id for passage in context.cited}, reranker is not None)
        known: Cut | None = "not_trusted" if untrusted else "filtered" if is_filtered else None
        fates = tuple(judge.fate(passage_id, ordinal, known) for passage_id, ordinal in document.passages)
        return Explanation(
            query_id=query_id,
            mode=plan.mode,
            routing=plan.routing,
            document_id=document_id,
            version_id=document.version_id,
            untrusted=untrusted,
            wanted=returned_by(request),
            candidates=len(every.passages),
            legs=_legs(plan, fates),
            passages=fates,
            entities=_entities(found.entities, document_id, context.text),
            relations=_relations(found.relations, document_id, context.text),
        )


class _Judge:
    def __init__(
        self, found: SearchResult, every: SearchResult, largest: SearchResult, cited: set[int], is_reranked: bool
    ) -> None:
        self._returned = {passage.passage_id: passage for passage in found.passages}
        self._candidates = {passage.passage_id: (rank, passage) for rank, passage in enumerate(every.passages, 1)}
        self._reachable = {passage.passage_id: passage for passage in largest.passages}
        self._cited = cited
        self._is_reranked = is_reranked

    def fate(self, passage_id: int, ordinal: int, known: Cut | None) -> PassageFate:
        """`known` is what cuts the whole document."""
        rank, candidate = self._candidates.get(passage_id, (None, None))
        seen: PassageEvidence | None = self._returned.get(passage_id) or candidate or self._reachable.get(passage_id)
        cut = known or self._cut(passage_id, rank)
        return PassageFate(passage_id, ordinal, seen.sources if seen is not None else (), rank, cut)

    def _cut(self, passage_id: int, rank: int | None) -> Cut | None:
        if passage_id in self._cited:
            return None
        if passage_id in self._returned:
            return "token_budget"
        if rank is not None:
            return "rerank" if self._is_reranked and rank <= CANDIDATES else "below_k"
        return "budget" if passage_id in self._reachable else "not_found"


async def _all_candidates(search: Search, workspace: EngineWorkspace, request: SearchRequest) -> SearchResult:
    if request.mode in LAZY_MODES:
        budgets = replace(request.budgets, max_context_chunks=ALL_CANDIDATES)
        return await search.search(workspace, replace(request, budgets=budgets))
    return await search.search(workspace, replace(request, top_k=ALL_CANDIDATES))


async def _with_largest_budgets(search: Search, workspace: EngineWorkspace, request: SearchRequest) -> SearchResult:
    """Modes without budgets have nothing to gain."""
    if request.mode not in LAZY_MODES:
        return SearchResult(())
    return await search.search(workspace, replace(request, budgets=replace(LARGEST, max_context_chunks=ALL_CANDIDATES)))


def _legs(plan: Plan, fates: Sequence[PassageFate]) -> tuple[LegFate, ...]:
    own = WALK_LEGS if plan.mode in LAZY_MODES else THEME_LEGS if plan.mode in THEME_MODES else ()
    names = LEGS[MODES[plan.mode]] + own
    ranks = {name: [source.rank for fate in fates for source in fate.found_by if source.leg == name] for name in names}
    return tuple(LegFate(name, len(found), min(found, default=None)) for name, found in ranks.items())


def _entities(found: Sequence[EntityEvidence], document_id: UUID, context: str) -> tuple[GraphFate, ...]:
    return tuple(
        GraphFate((item.name,), item.sources, entity_line(item) in context)
        for item in found
        if document_id in item.document_ids
    )


def _relations(found: Sequence[RelationEvidence], document_id: UUID, context: str) -> tuple[GraphFate, ...]:
    return tuple(
        GraphFate((item.source, item.target), item.sources, relation_line(item) in context)
        for item in found
        if document_id in item.document_ids
    )
