"""Answers a question with evidence: opens the workspace, asks the engine of the mode, renders, and writes the ledger."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID, uuid4

from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.domain.limits.errors import quota_exceeded
from app.domain.limits.repository import LimitsRepository, Standing
from app.domain.queries.context import Budgets, RenderedContext, render_context
from app.domain.queries.filters import NOT_FILTERED, GivenFilter
from app.domain.queries.repository import TrustedDocuments
from app.domain.usage.repository import UsageLedger
from app.domain.workspaces.opening import WorkspaceOpener
from app.domain.workspaces.repository import WorkspaceRecord, WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.domain.workspaces.settings import WorkspaceSettings
from app.errors import Invalid
from app.providers.contract import ModelProfile
from app.providers.usage import UsageMeter, meter_usage
from app.retrieval.budgets import NO_BUDGETS, LazyBudgets
from app.retrieval.concepts import ConceptGraph, ConceptGraphs
from app.retrieval.contract import (
    LAZY_MODES,
    MODES,
    EngineWorkspace,
    Keywords,
    SearchRequest,
    SearchResult,
)
from app.retrieval.registry import SearchRegistry
from app.text.tokens import count_again


class KeywordsNotUsed(Invalid):
    """Keywords steer the graph modes; the mode of this query has no use for them."""

    code = "keywords_not_used"
    title = "The mode takes no keywords"


class BudgetsNotUsed(Invalid):
    """Budgets steer the lazy modes; the mode of this query has no use for them."""

    code = "budgets_not_used"
    title = "The mode takes no budgets"


@dataclass(frozen=True)
class Question:
    """What was asked. `mode` None is the workspace's default, `top_k` None the mode's; token budgets are of the context."""

    query: str
    mode: str | None
    top_k: int | None
    graph_top_k: int
    max_entity_tokens: int
    max_relation_tokens: int
    max_total_tokens: int
    keywords: Keywords | Literal["llm"] | None
    include_partial: bool
    budgets: LazyBudgets = NO_BUDGETS
    filter: GivenFilter = NOT_FILTERED


@dataclass(frozen=True)
class Answer:
    """Evidence and its rendering, what it took, and what the reader should know about it."""

    mode: str
    result: SearchResult
    context: RenderedContext
    timings_ms: Mapping[str, float]
    query_id: UUID
    usage: UsageMeter
    cost: float | None
    notes: tuple[str, ...]


class QueryService:
    def __init__(self, database: Database, workspaces: WorkspaceOpener, searches: SearchRegistry) -> None:
        self._database = database
        self._workspaces = workspaces
        self._searches = searches

    async def ask(self, tenant_id: TenantId, workspace_id: WorkspaceId, question: Question) -> Answer:
        """No transaction is open while a model is asked.

        Raises WorkspaceNotFound, WorkspaceDeleting, UnknownMode, EngineOff, KeywordsNotUsed, BudgetsNotUsed,
        FieldNotDeclared, FilterMismatch or QuotaExceeded.
        """
        started = time.perf_counter()
        async with self._database.tenant(tenant_id) as session:
            record = await WorkspaceRepository(session).get(workspace_id)
            standing = await LimitsRepository(session).standing()
        refuse_deleting(record.row)
        request = _search_request(record, question)
        search = self._searches.search_for(request.mode, record.row.engines)
        workspace = await self._workspaces.engine_workspace(record)
        refuse_spent(standing, workspace.embedding.profile)
        opened = time.perf_counter()
        query_id = uuid4()
        cost = None
        with meter_usage() as meter:
            try:
                result = await search.search(workspace, request)
            finally:
                cost = await self._write_ledger(tenant_id, workspace_id, query_id, meter)
        found = time.perf_counter()
        budgets = Budgets(question.max_entity_tokens, question.max_relation_tokens, question.max_total_tokens)
        context = render_context(result, budgets, count_again)
        ended = time.perf_counter()
        stages = {"open": opened - started, "render": ended - found, "total": ended - started}
        return Answer(
            mode=request.mode,
            result=result,
            context=context,
            timings_ms={**result.stage_ms, **{name: seconds * 1000 for name, seconds in stages.items()}},
            query_id=query_id,
            usage=meter,
            cost=cost,
            notes=await self._notes(workspace, request, result, context),
        )

    async def concepts(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, graphs: ConceptGraphs, query: str, nodes: int
    ) -> ConceptGraph:
        """The concepts around a question. Raises WorkspaceNotFound or WorkspaceDeleting."""
        async with self._database.tenant(tenant_id) as session:
            record = await WorkspaceRepository(session).get(workspace_id)
        refuse_deleting(record.row)
        workspace = await self._workspaces.engine_workspace(record)
        with meter_usage() as meter:
            try:
                return await graphs.neighbourhood(workspace, query, nodes=nodes)
            finally:
                await self._write_ledger(tenant_id, workspace_id, uuid4(), meter)

    async def _write_ledger(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, query_id: UUID, meter: UsageMeter
    ) -> float | None:
        if not meter.totals:
            return None
        async with self._database.tenant(tenant_id) as session:
            return await UsageLedger(session).add(meter, workspace_id, query_id=query_id)

    async def _notes(
        self, workspace: EngineWorkspace, request: SearchRequest, result: SearchResult, context: RenderedContext
    ) -> tuple[str, ...]:
        engine = MODES[request.mode]
        notes = list(result.notes)
        if not (result.passages or result.entities or result.relations):
            async with self._database.tenant(workspace.ref.tenant_id) as session:
                if not await TrustedDocuments(session).count(workspace.ref.workspace_id, engine):
                    notes.append(f"No document of this workspace is ready for the {engine} engine yet.")
        if result.withheld:
            notes.append(f"{result.withheld} pieces of evidence are withheld: their documents are not trusted now.")
        if (cut := context.cut.sentence()) is not None:
            notes.append(cut)
        if offline := _offline_models(workspace, request.mode):
            notes.append(
                f"Made with offline models ({', '.join(offline)}): rules and small shipped models, not a language model."
            )
        return tuple(notes)


def _search_request(record: WorkspaceRecord, question: Question) -> SearchRequest:
    mode = record.row.default_mode if question.mode is None else question.mode
    if question.keywords is not None and MODES.get(mode, "graph") != "graph":
        raise KeywordsNotUsed(f"The mode {mode!r} takes no keywords; leave them out.", mode=mode)
    if question.budgets != NO_BUDGETS and mode in MODES and mode not in LAZY_MODES:
        raise BudgetsNotUsed(f"The mode {mode!r} takes no budgets of the lazy modes; leave them out.", mode=mode)
    return SearchRequest(
        query=question.query,
        mode=mode,
        top_k=question.top_k,
        graph_top_k=question.graph_top_k,
        max_entity_tokens=question.max_entity_tokens,
        max_relation_tokens=question.max_relation_tokens,
        keywords=question.keywords,
        include_partial=question.include_partial,
        budgets=question.budgets,
        filter=question.filter.typed(WorkspaceSettings.model_validate(record.row.settings).metadata_fields),
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
