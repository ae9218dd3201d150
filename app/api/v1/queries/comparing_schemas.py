"""What a comparison of modes looks like over HTTP."""

from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.api.v1.documents.schemas import DOCUMENT_ID
from app.api.v1.queries.routing_schemas import AddedTermRead, RoutingRead
from app.api.v1.queries.schemas import Query, Usage
from app.domain.queries.comparing import Comparison, Outcome
from app.domain.queries.service import Answer
from app.retrieval.contract import PassageEvidence

MAX_MODES = 6
SNIPPET_CHARS = 200


def _different(modes: list[str]) -> list[str]:
    if len(set(modes)) < len(modes):
        raise ValueError("must not name a mode twice")
    return modes


class ComparisonQuery(Query):
    """A question for several modes. All else is as in a query, and has to fit each of them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "Who supplies the seals?", "modes": ["baseline", "lazy", "mix"], "top_k": 8}]
        }
    )

    mode: None = Field(default=None, description="Not here: see `modes`.")
    modes: Annotated[list[Annotated[str, Field(max_length=40)]], AfterValidator(_different)] = Field(
        min_length=2, max_length=MAX_MODES, description="Names of `GET /v1/modes`, none twice."
    )


class PassageSummary(BaseModel):
    """A passage that a mode found; its text is cut."""

    rank: int
    passage_id: int
    document_id: UUID
    title: str
    score: float
    text: str

    @classmethod
    def of(cls, rank: int, passage: PassageEvidence) -> Self:
        return cls(
            rank=rank,
            passage_id=passage.passage_id,
            document_id=passage.document_id,
            title=passage.title,
            score=passage.score,
            text=passage.text[:SNIPPET_CHARS],
        )


class AnswerSummary(BaseModel):
    """What a mode answered."""

    id: UUID = Field(description="Of the query, as in the log: it can be rated.")
    mode: str = Field(description="The mode that was used.")
    routing: RoutingRead | None
    added_terms: list[AddedTermRead]
    context_tokens: int
    passages: list[PassageSummary]
    entities: int
    relations: int
    themes: list[str] = Field(description="Their labels, in the mode `themes`.")
    timings_ms: dict[str, float]
    usage: Usage = Field(description="The question is embedded once, by the first mode that asks.")
    notes: list[str]

    @classmethod
    def of(cls, answer: Answer) -> Self:
        result = answer.result
        return cls(
            id=answer.query_id,
            mode=answer.mode,
            routing=None if answer.routing is None else RoutingRead.model_validate(answer.routing),
            added_terms=[AddedTermRead.model_validate(term) for term in answer.added_terms],
            context_tokens=answer.context.tokens,
            passages=[PassageSummary.of(rank, passage) for rank, passage in enumerate(result.passages, start=1)],
            entities=len(result.entities),
            relations=len(result.relations),
            themes=[theme.label for theme in result.themes.themes],
            timings_ms={name: round(value, 2) for name, value in answer.timings_ms.items()},
            usage=Usage.of(answer.usage, answer.cost),
            notes=list(answer.notes),
        )


class ModeProblem(BaseModel):
    """Why a mode did not answer."""

    code: str
    title: str
    detail: str


class ModeOutcome(BaseModel):
    """Exactly one of `answer` and `problem` is there."""

    mode_asked: str
    answer: AnswerSummary | None
    problem: ModeProblem | None

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        error = outcome.error
        return cls(
            mode_asked=outcome.mode_asked,
            answer=None if outcome.answer is None else AnswerSummary.of(outcome.answer),
            problem=None if error is None else ModeProblem(code=error.reason, title=error.title, detail=error.detail),
        )


class Overlap(BaseModel):
    """Row and column i belong to the i-th mode: what two modes share as a part of what both found (Jaccard index)."""

    modes: list[str]
    passages: list[list[float]]
    documents: list[list[float]]


_PASSAGE: dict[str, Any] = {
    "rank": 1, "passage_id": 4711, "document_id": DOCUMENT_ID, "title": "Maintenance handbook", "score": 0.031,
    "text": "The seals of press 4 are replaced every 2,000 hours.",
}  # fmt: skip
_ANSWER: dict[str, Any] = {
    "id": "6a2f0c0e-2d0e-4f57-8f0c-5f4f8c0f6f01", "mode": "baseline", "routing": None, "added_terms": [],
    "context_tokens": 62, "passages": [_PASSAGE], "entities": 0, "relations": 0, "themes": [], "timings_ms": {"total": 21.4},
    "usage": {
        "model_calls": 0, "embedding_calls": 1, "rerank_calls": 0, "tokens_in": 14, "tokens_out": 0, "estimated_calls": 0,
        "sql_statements": 14, "cost": None,
    },
    "notes": [],
}  # fmt: skip
_PROBLEM: dict[str, Any] = {
    "code": "engine_off",
    "title": "The workspace does not have this engine",
    "detail": "Mode 'mix' needs the engine 'graph', which this workspace does not have.",
}


class ComparisonRead(BaseModel):
    """The modes in the order asked for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "0b5f6a1e-8c3d-4a52-9f0e-2f6f4f1f7a10",
                    "results": [
                        {"mode_asked": "baseline", "answer": _ANSWER, "problem": None},
                        {"mode_asked": "mix", "answer": None, "problem": _PROBLEM},
                    ],
                    "overlap": {
                        "modes": ["baseline", "mix"], "passages": [[1.0, 0.0], [0.0, 0.0]],
                        "documents": [[1.0, 0.0], [0.0, 0.0]],
                    },
                }
            ]
        }
    )  # fmt: skip

    id: UUID = Field(description="`comparison_id` of the queries in the log.")
    results: list[ModeOutcome]
    overlap: Overlap

    @classmethod
    def of(cls, found: Comparison) -> Self:
        return cls(
            id=found.id,
            results=[ModeOutcome.of(outcome) for outcome in found.outcomes],
            overlap=Overlap(
                modes=[outcome.mode_asked for outcome in found.outcomes],
                passages=[list(row) for row in found.passages],
                documents=[list(row) for row in found.documents],
            ),
        )
