"""Decides how a question is asked: the mode, by `auto` or by name, and whether the mode has a use for the rest. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from app.domain.queries.errors import (
    BudgetsNotUsed,
    KeywordsNotUsed,
    QueryRequired,
    RerankNotUsed,
    ThemeOptionsNotUsed,
)
from app.domain.queries.filters import NOT_FILTERED, GivenFilter
from app.domain.workspaces.repository import WorkspaceRecord
from app.domain.workspaces.settings import WorkspaceSettings
from app.retrieval.budgets import NO_BUDGETS, LazyBudgets
from app.retrieval.contract import GRAPH_MODES, LAZY_MODES, MODES, THEME_MODES, Engine, Keywords, SearchRequest
from app.retrieval.filters import EvidenceFilter
from app.retrieval.routing import AUTO, Routing, Situation, route
from app.retrieval.theme_contract import COVERAGE_WEIGHT, ThemeOptions
from app.text.routing.features import QuestionKind, rank_kinds, read_features

# Modes that look for keywords in the graph; `naive` looks for chunks only.
KEYWORD_MODES: Final = tuple(mode for mode in GRAPH_MODES if mode != "naive")
Expand = Literal["none", "cooccurrence", "llm"]


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
    rerank: bool | None = None
    timeout_ms: int | None = None
    budgets: LazyBudgets = NO_BUDGETS
    filter: GivenFilter = NOT_FILTERED
    expand: Expand = "none"
    level: int | Literal["auto"] | None = None
    min_relevance: float | None = None

    @property
    def has_theme_options(self) -> bool:
        return self.level is not None or self.min_relevance is not None


@dataclass(frozen=True)
class AddedTerm:
    """A word that was looked for beside those of the question, and who added it."""

    term: str
    origin: Literal["caller", "cooccurrence", "llm"]


@dataclass(frozen=True)
class Plan:
    """How a question is asked. `routing` is None where the mode was named."""

    mode_asked: str
    mode: str
    kind: QuestionKind
    routing: Routing | None
    question: Question
    filter: EvidenceFilter
    theme_coverage_weight: float = COVERAGE_WEIGHT

    @property
    def asks_chat(self) -> bool:
        return self.question.keywords == "llm" or self.question.expand == "llm"

    @property
    def given_terms(self) -> tuple[AddedTerm, ...]:
        """The caller's keywords where no step of the mode takes them as such: they are looked for as words."""
        keywords = self.question.keywords
        if not isinstance(keywords, Keywords) or self.mode in KEYWORD_MODES:
            return ()
        return tuple(AddedTerm(word, "caller") for word in dict.fromkeys((*keywords.low, *keywords.high)))

    def request(self, added: Sequence[AddedTerm]) -> SearchRequest:
        question = self.question
        return SearchRequest(
            query=question.query,
            mode=self.mode,
            top_k=question.top_k,
            graph_top_k=question.graph_top_k,
            max_entity_tokens=question.max_entity_tokens,
            max_relation_tokens=question.max_relation_tokens,
            keywords=question.keywords,
            include_partial=question.include_partial,
            budgets=question.budgets,
            filter=self.filter,
            added_terms=tuple(term.term for term in added),
            themes=ThemeOptions(
                question.level if isinstance(question.level, int) else None,
                question.min_relevance,
                self.theme_coverage_weight,
            ),
        )


def asked_mode(record: WorkspaceRecord, question: Question) -> str:
    return record.row.default_mode if question.mode is None else question.mode


def plan_question(
    record: WorkspaceRecord, question: Question, documents: Mapping[Engine, int], *, has_themes: bool = False
) -> Plan:
    """What the workspace has is looked at for `auto` only: the documents that each engine answers from, and whether there
    is a map of themes.

    Raises KeywordsNotUsed, BudgetsNotUsed, ThemeOptionsNotUsed, RerankNotUsed, QueryRequired, NoModeFits, FieldNotDeclared
    or FilterMismatch.
    """
    asked = asked_mode(record, question)
    settings = WorkspaceSettings.stored(record.row.settings)
    wanted = question.filter.typed(settings.metadata_fields)
    weight = settings.theme_coverage_weight
    if not question.query.strip():
        _refuse_unasked(asked, question)
        return Plan(asked, asked, QuestionKind.CORPUS_WIDE, None, question, wanted, weight)
    features = read_features(question.query)
    if asked != AUTO:
        _refuse_unused(asked, question)
        return Plan(asked, asked, rank_kinds(features)[0][0], None, question, wanted, weight)
    situation = Situation(tuple(record.row.engines), documents, has_themes)
    routing = route(features, situation, settings.routing, _fitting_modes(question))
    return Plan(asked, routing.mode, routing.kind, routing, question, wanted, weight)


def _fitting_modes(question: Question) -> tuple[str, ...] | None:
    """The modes that have a use for what a question says besides its words; None for all."""
    modes = tuple(MODES)
    if question.budgets != NO_BUDGETS:
        modes = tuple(mode for mode in modes if mode in _modes_of(question.budgets))
    if question.has_theme_options:
        modes = tuple(mode for mode in modes if mode in THEME_MODES)
    if question.rerank:
        modes = tuple(mode for mode in modes if mode not in THEME_MODES)
    if question.keywords == "llm":
        modes = tuple(mode for mode in modes if mode in KEYWORD_MODES)
    return None if modes == tuple(MODES) else modes


def _refuse_unused(mode: str, question: Question) -> None:
    if mode not in MODES:
        return  # the registry refuses it
    if question.keywords == "llm" and mode not in KEYWORD_MODES:
        raise KeywordsNotUsed(
            f"The mode {mode!r} asks no model for keywords; give your own, or use `expand`.", mode=mode
        )
    if question.has_theme_options and mode not in THEME_MODES:
        raise ThemeOptionsNotUsed(
            f"The mode {mode!r} has no themes: `level` and `min_relevance` are for the mode 'themes'.", mode=mode
        )
    if question.rerank and mode in THEME_MODES:
        raise RerankNotUsed(f"The mode {mode!r} is not reranked: its passages stand for their themes.", mode=mode)
    if question.budgets != NO_BUDGETS and mode not in _modes_of(question.budgets):
        raise BudgetsNotUsed(f"The mode {mode!r} takes no budgets of the lazy modes; leave them out.", mode=mode)


def _refuse_unasked(mode: str, question: Question) -> None:
    """Without words there is nothing to look for but themes, and nothing to add words to."""
    if mode == AUTO or (mode in MODES and mode not in THEME_MODES):
        raise QueryRequired(
            f"`query` must not be blank: only the mode 'themes' answers without, not {mode!r}.", mode=mode
        )
    if question.expand != "none" or question.keywords is not None:
        raise QueryRequired("`expand` and `keywords` add words to a question, and `query` is blank.", mode=mode)
    _refuse_unused(mode, question)


def _modes_of(budgets: LazyBudgets) -> tuple[str, ...]:
    """The modes that have a use for all of these; themes return passages, and walk nowhere."""
    only_passages = replace(budgets, max_context_chunks=None) == NO_BUDGETS
    return (*LAZY_MODES, *THEME_MODES) if only_passages else LAZY_MODES
