"""Answers a question with evidence: opens the workspace, asks the engine of the mode, renders, and writes the ledger."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from app.db.base import TenantId, WorkspaceId
from app.db.counting import counting_statements
from app.db.session import Database
from app.domain.limits.errors import quota_exceeded
from app.domain.limits.repository import LimitsRepository, Standing
from app.domain.queries.context import Budgets, RenderedContext
from app.domain.queries.deadlines import answered_within, missing_legs
from app.domain.queries.expansion import Expansion, RememberedEmbedding, expand
from app.domain.queries.log import QueryLog
from app.domain.queries.log_repository import LogEntry
from app.domain.queries.planning import AddedTerm, Plan, Question, asked_mode, plan_question
from app.domain.queries.ready import ReadyDocuments
from app.domain.queries.repository import TrustedDocuments
from app.domain.queries.reranking import Reranked, Reranking, RerankModelMissing, widened
from app.domain.queries.theme_context import render
from app.domain.usage.booking import book_query
from app.domain.workspaces.opening import WorkspaceOpener
from app.domain.workspaces.repository import WorkspaceRecord, WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.metrics import observe_query
from app.providers.contract import EmbeddingModel, ModelProfile, RerankModel
from app.providers.usage import UsageMeter, meter_usage
from app.retrieval.concepts import ConceptGraph, ConceptGraphs
from app.retrieval.contract import MODES, THEME_MODES, Engine, EngineWorkspace, Search, SearchRequest, SearchResult
from app.retrieval.registry import SearchRegistry
from app.retrieval.routing import AUTO, Routing
from app.text.tokens import count_again


@dataclass(frozen=True)
class Answer:
    """Evidence and its rendering, what it took, and what the reader should know about it."""

    plan: Plan
    added_terms: tuple[AddedTerm, ...]
    result: SearchResult
    context: RenderedContext
    timings_ms: Mapping[str, float]
    query_id: UUID
    usage: UsageMeter
    notes: tuple[str, ...]
    cost: float | None = None
    missing_legs: tuple[str, ...] = ()
    statements: int = 0

    @property
    def mode(self) -> str:
        return self.plan.mode

    @property
    def routing(self) -> Routing | None:
        return self.plan.routing


class QueryService:
    def __init__(
        self,
        database: Database,
        workspaces: WorkspaceOpener,
        searches: SearchRegistry,
        concepts: ConceptGraphs,
        reranking: Reranking,
        ready: ReadyDocuments,
    ) -> None:
        self._database = database
        self._workspaces = workspaces
        self._searches = searches
        self._concepts = concepts
        self._reranking = reranking
        self._ready = ready
        self._log = QueryLog(database)

    async def ask(
        self,
        tenant_id: TenantId,
        workspace_id: WorkspaceId,
        question: Question,
        *,
        embedding: EmbeddingModel | None = None,
        comparison_id: UUID | None = None,
    ) -> Answer:
        """No transaction is open while a model is asked. `embedding` stands for the workspace's own.

        What a leg of the search finds only after `timeout_ms` is not in the answer, which names such legs.

        Raises WorkspaceNotFound, WorkspaceDeleting, UnknownMode, EngineOff, KeywordsNotUsed, BudgetsNotUsed, NoModeFits,
        ThemeOptionsNotUsed, RerankNotUsed, QueryRequired, ThemeLevelUnknown, ChatModelMissing, FieldNotDeclared,
        FilterMismatch, RerankModelMissing, QuotaExceeded or QueryDeadline.
        """
        query_id = uuid4()
        with counting_statements() as count, meter_usage() as meter:
            try:
                async with answered_within(question.timeout_ms) as deadline:
                    record, answer = await self._answer(tenant_id, workspace_id, question, embedding, query_id, meter)
                missing = missing_legs(deadline)
                booking = await self._log.close(record, _log_entry(answer, comparison_id), meter)
            except BaseException:
                await book_query(self._database, tenant_id, workspace_id, query_id, meter)
                raise
        late = (f"Not searched in time: {', '.join(missing)}.",) if missing else ()
        answer = replace(
            answer,
            cost=booking.cost,
            missing_legs=missing,
            notes=(*answer.notes, *late, *booking.notes),
            statements=count.statements,
        )
        _observe(answer)
        return answer

    async def _answer(
        self,
        tenant_id: TenantId,
        workspace_id: WorkspaceId,
        question: Question,
        embedding: EmbeddingModel | None,
        query_id: UUID,
        meter: UsageMeter,
    ) -> tuple[WorkspaceRecord, Answer]:
        started = time.perf_counter()
        record, search, workspace, plan, reranker = await self._open(tenant_id, workspace_id, question)
        if embedding is not None or question.expand != "none":
            # Whoever adds terms embeds the question too.
            workspace = replace(workspace, embedding=embedding or RememberedEmbedding(workspace.embedding))
        opened = time.perf_counter()
        expansion = await expand(self._concepts, workspace, plan)
        expanded = time.perf_counter()
        found = await self._find(search, workspace, plan.request(expansion.terms), reranker)
        result = found.result
        searched = time.perf_counter()
        budgets = Budgets(question.max_entity_tokens, question.max_relation_tokens, question.max_total_tokens)
        context = render(plan.mode, result, budgets, count_again)
        ended = time.perf_counter()
        stages = {"open": opened - started, "render": ended - searched, "total": ended - started}
        if question.expand != "none":
            stages["expand"] = expanded - opened
        return record, Answer(
            plan=plan,
            added_terms=expansion.terms,
            result=result,
            context=context,
            timings_ms={**found.stage_ms, **{name: seconds * 1000 for name, seconds in stages.items()}},
            query_id=query_id,
            usage=meter,
            notes=(*await self._notes(workspace, plan, result, context, expansion), *found.notes),
        )

    async def _open(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, question: Question
    ) -> tuple[WorkspaceRecord, Search, EngineWorkspace, Plan, RerankModel | None]:
        async with self._database.tenant(tenant_id) as session:
            record = await WorkspaceRepository(session).get(workspace_id)
            standing = await LimitsRepository(session).standing()
            documents: Mapping[Engine, int] = {}
            has_themes = False
            if asked_mode(record, question) == AUTO:
                documents = await self._ready.count(
                    session, workspace_id, record.corpus_version, include_partial=question.include_partial
                )
                has_themes = await TrustedDocuments(session).has_themes(workspace_id)
        refuse_deleting(record.row)
        plan = plan_question(record, question, documents, has_themes=has_themes)
        search = self._searches.search_for(plan.mode, record.row.engines)
        workspace = await self._workspaces.engine_workspace(record)
        refuse_spent(standing, workspace.embedding.profile)
        if plan.asks_chat and workspace.chat is not None:
            refuse_spent(standing, workspace.chat.profile)
        reranker = None if plan.mode in THEME_MODES else await self._reranker(record, question, standing)
        return record, search, workspace, plan, reranker

    async def _reranker(self, record: WorkspaceRecord, question: Question, standing: Standing) -> RerankModel | None:
        """None where nothing is to be reranked. Raises RerankModelMissing, QuotaExceeded or QueryDeadline."""
        if question.rerank is False:
            return None
        reranker = await self._workspaces.reranker(record)
        if reranker is None and question.rerank:
            raise RerankModelMissing("This workspace names no rerank_model.", workspace_id=record.row.id)
        if reranker is not None:
            refuse_spent(standing, reranker.profile)
        return reranker

    async def _find(
        self, search: Search, workspace: EngineWorkspace, request: SearchRequest, reranker: RerankModel | None
    ) -> Reranked:
        if reranker is None:
            return Reranked(await search.search(workspace, request))
        return await self._reranking.apply(reranker, request, await search.search(workspace, widened(request)))

    async def open(self, tenant_id: TenantId, workspace_id: WorkspaceId) -> EngineWorkspace:
        """Raises WorkspaceNotFound or WorkspaceDeleting."""
        async with self._database.tenant(tenant_id) as session:
            record = await WorkspaceRepository(session).get(workspace_id)
        refuse_deleting(record.row)
        return await self._workspaces.engine_workspace(record)

    async def concepts(self, tenant_id: TenantId, workspace_id: WorkspaceId, query: str, nodes: int) -> ConceptGraph:
        """The concepts around a question. Raises WorkspaceNotFound, WorkspaceDeleting or QuotaExceeded."""
        workspace = await self.open(tenant_id, workspace_id)
        async with self._database.tenant(tenant_id) as session:
            refuse_spent(await LimitsRepository(session).standing(), workspace.embedding.profile)
        with meter_usage() as meter:
            try:
                return await self._concepts.neighbourhood(workspace, query, nodes=nodes)
            finally:
                await book_query(self._database, tenant_id, workspace_id, uuid4(), meter)

    async def _notes(
        self,
        workspace: EngineWorkspace,
        plan: Plan,
        result: SearchResult,
        context: RenderedContext,
        expansion: Expansion,
    ) -> tuple[str, ...]:
        engine = MODES[plan.mode]
        notes = [*expansion.notes, *(notice.detail for notice in result.themes.notices), *result.notes]
        is_empty = not (result.passages or result.entities or result.relations)
        if is_empty and not await self._is_ready(workspace, engine, include_partial=plan.question.include_partial):
            notes.append(f"No document of this workspace is ready for the {engine} engine yet.")
        if result.withheld:
            withheld = ", ".join(f"{number} {reason}" for reason, number in result.withheld.items())
            notes.append(f"Withheld, because their documents cannot be trusted now: {withheld}.")
        if (cut := context.cut.sentence()) is not None:
            notes.append(cut)
        if offline := _offline_models(workspace, plan.mode):
            notes.append(
                f"Made with offline models ({', '.join(offline)}): rules and small shipped models, not a language model."
            )
        return tuple(notes)

    async def _is_ready(self, workspace: EngineWorkspace, engine: Engine, *, include_partial: bool) -> bool:
        """Whether the engine answers from any document at all."""
        ref, version = workspace.ref, workspace.corpus_version or 0
        async with self._database.tenant(ref.tenant_id) as session:
            counts = await self._ready.count(session, ref.workspace_id, version, include_partial=include_partial)
        return engine in counts


def _observe(answer: Answer) -> None:
    usage = answer.usage
    observe_query(
        answer.mode,
        answer.timings_ms,
        statements=answer.statements,
        calls={"chat": usage.calls, "embedding": usage.embedding_calls, "rerank": usage.rerank_calls},
        tokens={"in": usage.tokens_in, "out": usage.tokens_out},
        missing_legs=answer.missing_legs,
    )


def _log_entry(answer: Answer, comparison_id: UUID | None) -> LogEntry:
    result, usage, plan = answer.result, answer.usage, answer.plan
    return LogEntry(
        query_id=answer.query_id,
        comparison_id=comparison_id,
        mode_asked=plan.mode_asked,
        mode=plan.mode,
        kind=plan.kind.value,
        text=plan.question.query,
        milliseconds=answer.timings_ms["total"],
        cost=answer.cost,
        model_calls=usage.calls,
        embedding_calls=usage.embedding_calls,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        passages=len(result.passages),
        entities=len(result.entities),
        relations=len(result.relations),
        withheld=sum(result.withheld.values()),
        passage_ids=tuple(passage.passage_id for passage in result.passages),
        document_ids=tuple(passage.document_id for passage in result.passages),
    )


def _offline_models(workspace: EngineWorkspace, mode: str) -> list[str]:
    """Names of the offline models that this answer stands on, at indexing or now."""
    models = [workspace.embedding.profile]
    if MODES[mode] == "graph" and workspace.chat is not None:
        models.append(workspace.chat.profile)
    return [model.name for model in models if model.is_offline]


def refuse_spent(standing: Standing, model: ModelProfile) -> None:
    """Before `model` is asked; offline models cost nothing. Raises QuotaExceeded."""
    if standing.is_spent and not model.is_offline:
        raise quota_exceeded(
            limit="model_tokens_per_month",
            maximum=standing.plan.model_tokens_per_month if standing.plan is not None else None,
            used=standing.model_tokens,
            resets_at=standing.month_ends_at,
        )
