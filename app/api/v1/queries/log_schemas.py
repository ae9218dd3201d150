"""What the query log, feedback and the report look like over HTTP."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.api.fields import Body, Prose
from app.api.pagination import Page
from app.api.v1.documents.schemas import DOCUMENT_ID
from app.db.models import LoggedQuery, QueryEvidence, QueryFeedback, QueryVerdict
from app.domain.queries.feedback import Feedback
from app.domain.queries.feedback_repository import ModeStanding

LARGEST_ID = 2**63 - 1
QUERY_ID = "6a2f0c0e-2d0e-4f57-8f0c-5f4f8c0f6f01"
LOGGED: dict[str, Any] = {
    "id": QUERY_ID, "comparison_id": None, "mode_asked": "auto", "mode": "baseline", "kind": "fact", "text": None,
    "milliseconds": 21.4, "cost": None, "model_calls": 0, "embedding_calls": 1, "tokens_in": 14, "tokens_out": 0,
    "passages": 1, "entities": 0, "relations": 0, "withheld": 0, "created_at": "2026-11-30T13:00:00Z",
}  # fmt: skip
FEEDBACK: dict[str, Any] = {
    "caller": "key:c1b0e0a5-51f5-4a2e-8f0d-6b1f5a7d9e33", "rating": 4, "comment": "The second passage is about another press.",
    "evidence": [{"passage_id": 4711, "is_relevant": True}],
    "created_at": "2026-11-30T13:01:00Z", "updated_at": "2026-11-30T13:01:00Z",
}  # fmt: skip


class LoggedQueryRead(BaseModel):
    """A query of the log."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    comparison_id: UUID | None = Field(description="Of queries that were compared with each other.")
    mode_asked: str
    mode: str = Field(description="The mode that was used.")
    kind: str = Field(description="What kind of question it was taken for.")
    text: str | None = Field(description="Null unless the workspace keeps it (`query_log_text`).")
    milliseconds: float
    cost: float | None
    model_calls: int
    embedding_calls: int
    tokens_in: int
    tokens_out: int
    passages: int
    entities: int
    relations: int
    withheld: int
    created_at: datetime


class LoggedQueryPage(Page[LoggedQueryRead]):
    """Queries, the newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [LOGGED], "next_cursor": None}]})


class EvidenceRead(BaseModel):
    """A passage of the answer."""

    model_config = ConfigDict(from_attributes=True)

    rank: int
    passage_id: int
    document_id: UUID


class Verdict(Body):
    """Whether a passage helps to answer the question."""

    model_config = ConfigDict(from_attributes=True)

    passage_id: int = Field(ge=1, le=LARGEST_ID)
    is_relevant: bool


def _each_once(verdicts: list[Verdict]) -> list[Verdict]:
    if len({verdict.passage_id for verdict in verdicts}) < len(verdicts):
        raise ValueError("must not name a passage twice")
    return verdicts


class FeedbackGiven(Body):
    """What you think of an answer; it takes the place of what you said before."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"rating": 5}, {"rating": 4, "evidence": FEEDBACK["evidence"]}]}
    )

    rating: int = Field(ge=1, le=5, description="From 1, of no use, to 5, just what was wanted.")
    comment: Prose | None = Field(default=None, max_length=2000)
    evidence: Annotated[list[Verdict], AfterValidator(_each_once)] = Field(
        default=[], max_length=100, description="Of passages of the answer."
    )

    def feedback(self) -> Feedback:
        return Feedback(self.rating, self.comment, {each.passage_id: each.is_relevant for each in self.evidence})


class FeedbackRead(BaseModel):
    """What one caller thinks of an answer."""

    model_config = ConfigDict(json_schema_extra={"examples": [FEEDBACK]})

    caller: str
    rating: int
    comment: str | None
    evidence: list[Verdict]
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: QueryFeedback, verdicts: list[QueryVerdict]) -> Self:
        return cls(
            caller=row.caller,
            rating=row.rating,
            comment=row.comment,
            evidence=[Verdict.model_validate(verdict) for verdict in verdicts if verdict.caller == row.caller],
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


class LoggedQueryDetail(LoggedQueryRead):
    """A query with its evidence, what is left of it, and what people said."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    **LOGGED,
                    "evidence": [{"rank": 1, "passage_id": 4711, "document_id": DOCUMENT_ID}],
                    "feedback": [FEEDBACK],
                }
            ]
        }
    )

    evidence: list[EvidenceRead] = Field(description="Best first; passages of documents that are gone are gone too.")
    feedback: list[FeedbackRead]

    @classmethod
    def with_all(
        cls, row: LoggedQuery, evidence: list[QueryEvidence], feedback: list[FeedbackRead]
    ) -> "LoggedQueryDetail":
        return cls.model_validate(
            {
                **LoggedQueryRead.model_validate(row).model_dump(),
                "evidence": [EvidenceRead.model_validate(each) for each in evidence],
                "feedback": feedback,
            }
        )


class ModeStandingRead(BaseModel):
    """How a mode did with questions of one kind."""

    model_config = ConfigDict(from_attributes=True)

    mode: str
    queries: int
    ratings: int
    mean_rating: float | None
    verdicts: int
    relevant_share: float | None = Field(description="Of the passages that people judged, those they found relevant.")
    mean_milliseconds: float
    cost: float | None


class KindReport(BaseModel):
    """The modes that answered questions of one kind, the best liked first."""

    kind: str
    best_mode: str | None = Field(description="Null as long as no mode has enough ratings.")
    modes: list[ModeStandingRead]


class QueryReport(BaseModel):
    """Which mode answered best, by the ratings of the log."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "min_ratings": 5,
                    "kinds": [
                        {
                            "kind": "fact",
                            "best_mode": "baseline",
                            "modes": [
                                {
                                    "mode": "baseline", "queries": 120, "ratings": 14, "mean_rating": 4.4,
                                    "verdicts": 20, "relevant_share": 0.6, "mean_milliseconds": 18.2, "cost": None,
                                }
                            ],
                        }
                    ],
                }
            ]
        }
    )  # fmt: skip

    min_ratings: int
    kinds: list[KindReport]

    @classmethod
    def of(cls, standings: list[ModeStanding], min_ratings: int) -> Self:
        kinds: dict[str, list[ModeStanding]] = {}
        for standing in standings:
            kinds.setdefault(standing.kind, []).append(standing)
        return cls(
            min_ratings=min_ratings,
            kinds=[
                KindReport(
                    kind=kind,
                    best_mode=next((found.mode for found in modes if found.ratings >= min_ratings), None),
                    modes=[ModeStandingRead.model_validate(found) for found in modes],
                )
                for kind, modes in kinds.items()
            ],
        )
