"""What questions and their answers look like over HTTP."""

from dataclasses import fields
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.fields import Body, Prose
from app.api.v1.documents.schemas import DOCUMENT_ID, VERSION_ID
from app.api.v1.queries.evidence import Citation, EntityFound, Evidence, PassageFound, RelationFound
from app.api.v1.queries.filters import FilterGiven
from app.api.v1.queries.routing_schemas import ROUTING_EXAMPLE, AddedTermRead, RoutingRead
from app.api.v1.themes.schemas import MAX_LEVEL, NoticeRead, ThemesRead
from app.api.v1.workspaces.schemas import EXAMPLE_ID as WORKSPACE_ID
from app.db.base import WorkspaceId
from app.domain.queries.filters import NOT_FILTERED
from app.domain.queries.planning import Expand, Question
from app.domain.queries.service import Answer
from app.domain.workspaces.settings import Line
from app.providers.usage import UsageMeter
from app.retrieval.budgets import LazyBudgets
from app.retrieval.contract import THEME_MODES, EntityEvidence, Keywords, PassageEvidence, RelationEvidence, Source

MAX_QUERY_CHARS = 10_000
Keyword = Annotated[Line, Field(max_length=200)]


def not_blank(text: str) -> str:
    """Refuses what is only white space."""
    if not text.strip():
        raise ValueError("must not be blank")
    return text


class KeywordsGiven(Body):
    """`high`: themes and relations. `low`: names and things."""

    high: list[Keyword] = Field(default=[], max_length=50)
    low: list[Keyword] = Field(default=[], max_length=50)


class Query(Body):
    """A question, and how much evidence to bring."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "How often are the seals of press 4 replaced?"},
                {"query": "Who supplies the seals?", "mode": "mix", "top_k": 20, "max_total_tokens": 8000},
                {"query": "Who supplies the seals?", "mode": "lazy-fast", "relevance_budget": 12, "seed_k": 6},
                {"query": "Who supplies the seals?", "filter": {"languages": ["en", "de"]}},
                {"query": "Who supplies the seals?", "mode": "local", "keywords": {"low": ["press 4", "seal"]}},
                {"mode": "themes", "level": 0, "top_k": 10},
            ]
        }
    )

    query: Prose = Field(
        default="",
        max_length=MAX_QUERY_CHARS,
        description=f"At most {MAX_QUERY_CHARS} characters; blank in the mode `themes` only: what the corpus is about.",
    )
    mode: str | None = Field(
        default=None, max_length=40, description="One of `GET /v1/modes`; else the workspace's default mode."
    )
    top_k: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="Passages; else 10, and in lazy modes what `max_context_chunks` says. In `themes`: themes; else 5.",
    )
    graph_top_k: int = Field(default=40, ge=1, le=200, description="Entities and relations.")
    max_entity_tokens: int = Field(default=6000, ge=0, le=100_000, description="Of the context, for entities.")
    max_relation_tokens: int = Field(default=8000, ge=0, le=100_000, description="Of the context, for relations.")
    max_total_tokens: int = Field(default=30_000, ge=100, le=200_000, description="Of the context as a whole.")
    keywords: KeywordsGiven | Literal["llm"] | None = Field(
        default=None,
        description="Your own, in any mode; `llm` (graph modes): one call of the chat model; else they are extracted by rules.",
    )
    expand: Expand = Field(
        default="none",
        description="Terms to look for as well: `cooccurrence`, from beside the question's in the corpus; `llm`, by one call.",
    )
    include_partial: bool = Field(
        default=False, description="Also use documents of which the engine has indexed a part only."
    )

    rerank: bool | None = Field(
        default=None, description="Whether the workspace's `rerank_model` orders the passages; null: where it has one."
    )
    filter: FilterGiven | None = Field(default=None, description="Which documents evidence may come from.")

    timeout_ms: int | None = Field(
        default=None, ge=10, le=600_000, description="Legs that are not done in time are left out; none done: 504."
    )

    level: Annotated[int, Field(ge=0, le=MAX_LEVEL)] | Literal["auto"] | None = Field(
        default=None, description="`themes` only: 0 is the coarsest; `auto` and null: as fits the question."
    )
    min_relevance: float | None = Field(
        default=None, ge=0, le=1, description="`themes` only: themes of less relevance to the question are left out."
    )

    preset: Literal["showcase"] | None = Field(
        default=None, description="Lazy modes: the budgets of the project that lazy retrieval comes from."
    )
    relevance_budget: int | None = Field(
        default=None, ge=1, le=128, description="Lazy modes: concepts followed in each hop; else 8, 16 or 24."
    )
    seed_k: int | None = Field(
        default=None, ge=1, le=32, description="Lazy modes: passages to start from; else 4, 8 or 12."
    )
    max_context_chunks: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="Lazy modes: passages; goes before `top_k`. Else 4, 8 or 12. In `themes`: passages of all themes.",
    )
    max_concepts_per_chunk: int | None = Field(
        default=None, ge=1, le=40, description="Lazy modes: concepts read of a passage; else 24, 32 or 40."
    )

    def question(self) -> Question:
        keywords = self.keywords
        if isinstance(keywords, KeywordsGiven):
            steering: Keywords | Literal["llm"] | None = Keywords(tuple(keywords.high), tuple(keywords.low))
        else:
            steering = keywords
        budgets = {field.name: getattr(self, field.name) for field in fields(LazyBudgets)}
        given = {name: getattr(self, name) for name in Query.model_fields if name not in budgets}
        narrowed = NOT_FILTERED if self.filter is None else self.filter.question_filter()
        steered = {"keywords": steering, "budgets": LazyBudgets(**budgets), "filter": narrowed}
        return Question(**{**given, **steered})


class Usage(BaseModel):
    """What this answer took of models."""

    model_calls: int = Field(description="Calls of chat models.")
    embedding_calls: int
    rerank_calls: int
    tokens_in: int
    tokens_out: int
    estimated_calls: int = Field(description="Calls whose tokens were counted here, for the provider did not say.")
    sql_statements: int = Field(
        description="From when the caller is known to the writing of the ledger; transactions' begins and ends are not counted."
    )
    cost: float | None = Field(description="At the models' prices, where the operator has set any.")

    @classmethod
    def of(cls, usage: UsageMeter, cost: float | None, statements: int = 0) -> Self:
        return cls(
            model_calls=usage.calls,
            embedding_calls=usage.embedding_calls,
            rerank_calls=usage.rerank_calls,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            estimated_calls=usage.estimated_calls,
            sql_statements=statements,
            cost=cost,
        )


class QueryAnswer(BaseModel):
    """Evidence, and the same as a context to put before a language model. No answer is generated."""

    id: UUID = Field(description="`query_id` of `GET /v1/usage`.")
    mode: str = Field(description="The mode that was used.")
    routing: RoutingRead | None = Field(description="Of `auto`: why it picked the mode; else null.")
    added_terms: list[AddedTermRead] = Field(description="Words that were looked for beside the question's own.")
    context: str
    context_tokens: int
    citations: list[Citation] = Field(description="In the order of their marks in the context.")
    evidence: Evidence
    themes: ThemesRead | None = Field(description="Of the mode `themes`; else null.")
    notices: list[NoticeRead] = Field(description="What a program should know of the answer, by stable code.")
    withheld: dict[str, int] = Field(
        description="Pieces of evidence that were found and may not be used now, by reason: `deleting`, `purging`,"
        " `replaced`, `partial` or `not_ready`; under a `filter` documents that meet it."
    )
    timings_ms: dict[str, float] = Field(description="Milliseconds by stage; `total` is all of it.")
    usage: Usage
    missing_legs: list[str] = Field(description="Legs of the search that were not done within `timeout_ms`.")
    notes: list[str] = Field(description="What a reader should know: offline models, evidence left out, nothing found.")
    details: dict[str, Any] = Field(description="The engine's own account of the search; its shape is not stable.")

    @classmethod
    def of(cls, answer: Answer, workspace_id: WorkspaceId) -> Self:
        result = answer.result
        return cls(
            id=answer.query_id,
            mode=answer.mode,
            routing=None if answer.routing is None else RoutingRead.model_validate(answer.routing),
            added_terms=[AddedTermRead.model_validate(term) for term in answer.added_terms],
            context=answer.context.text,
            context_tokens=answer.context.tokens,
            citations=Citation.of_all(answer.context.cited, workspace_id),
            evidence=Evidence.of(result, workspace_id),
            themes=ThemesRead.of(result.themes, workspace_id) if answer.mode in THEME_MODES else None,
            notices=[NoticeRead.model_validate(notice) for notice in result.themes.notices],
            withheld=dict(result.withheld),
            timings_ms={name: round(value, 2) for name, value in answer.timings_ms.items()},
            usage=Usage.of(answer.usage, answer.cost, answer.statements),
            missing_legs=list(answer.missing_legs),
            notes=list(answer.notes),
            details=dict(result.details),
        )


_PASSAGE = PassageEvidence(
    passage_id=4711,
    document_id=UUID(DOCUMENT_ID),
    version_id=UUID(VERSION_ID),
    title="Maintenance handbook",
    filename="handbooks/press-4.pdf",
    ordinal=12,
    text="The seals of press 4 are replaced every 2,000 hours.",
    page_start=9,
    page_end=9,
    char_start=20311,
    char_end=20363,
    heading_path=("Maintenance", "Seals"),
    score=0.0311,
    sources=(Source("bm25", 1, 7.4), Source("vectors", 2, 0.71)),
)
_ENTITY = EntityEvidence(
    "Press 4",
    "Machine",
    "A hydraulic press in hall B.",
    (UUID(DOCUMENT_ID),),
    (Source("entities", 1, 0.83),),
    score=0.0164,
)
_RELATION = RelationEvidence(
    "Press 4",
    "Seal",
    "The seals of press 4 wear out.",
    "wear",
    1.0,
    (UUID(DOCUMENT_ID),),
    (Source("relations", 1, 0.71),),
    score=0.0164,
)
QueryAnswer.model_config["json_schema_extra"] = {
    "examples": [
        {
            "id": "6a2f0c0e-2d0e-4f57-8f0c-5f4f8c0f6f01",
            "mode": "mix",
            "routing": ROUTING_EXAMPLE,
            "added_terms": [],
            "context": "## Entities\n- Press 4 (Machine): A hydraulic press in hall B.\n\n## Passages\n"
            "[1] Maintenance handbook › Maintenance › Seals › page 9\n"
            "The seals of press 4 are replaced every 2,000 hours.",
            "context_tokens": 62,
            "citations": [Citation.of(1, _PASSAGE, WorkspaceId(UUID(WORKSPACE_ID))).model_dump(mode="json")],
            "evidence": {
                "passages": [PassageFound.model_validate(_PASSAGE).model_dump(mode="json")],
                "entities": [EntityFound.of(_ENTITY, WorkspaceId(UUID(WORKSPACE_ID))).model_dump(mode="json")],
                "relations": [RelationFound.of(_RELATION, WorkspaceId(UUID(WORKSPACE_ID))).model_dump(mode="json")],
            },
            "themes": None,
            "notices": [],
            "withheld": {},
            "timings_ms": {"open": 3.1, "keywords": 0.4, "retrieve": 48.0, "render": 1.2, "total": 61.7},
            "usage": {
                "model_calls": 0,
                "embedding_calls": 1,
                "rerank_calls": 0,
                "tokens_in": 14,
                "tokens_out": 0,
                "estimated_calls": 0,
                "sql_statements": 14,
                "cost": None,
            },
            "missing_legs": [],
            "notes": [],
            "details": {},
        }
    ]
}
QueryAnswer.model_rebuild(force=True)
