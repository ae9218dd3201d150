"""The route that says why a document is in an answer or not."""

from typing import Literal
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from app.api.connected import while_connected
from app.api.deps import ContainerDep, ReaderCaller, WorkspaceDep
from app.api.idempotency import READS_ONLY
from app.api.problems import problems
from app.api.v1.documents.schemas import DOCUMENT_ID, VERSION_ID
from app.api.v1.queries.evidence import SourceRead
from app.api.v1.queries.router import QUERY_ERRORS
from app.api.v1.queries.schemas import Query
from app.domain.documents.errors import DocumentNotFound

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/explain", tags=["queries"])

Cut = Literal["not_trusted", "filtered", "not_found", "budget", "below_k", "rerank", "token_budget"]


class ExplainQuery(Query):
    """A question as it is asked, and the document that is missed, or wondered at, in its answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "Who supplies the seals?", "document_id": DOCUMENT_ID, "mode": "lazy"}]
        }
    )

    document_id: UUID


class PassageFateRead(BaseModel):
    """What became of a passage of the document."""

    model_config = ConfigDict(from_attributes=True)

    passage_id: int
    ordinal: int
    found_by: list[SourceRead] = Field(description="The legs that found it; empty if none did.")
    rank: int | None = Field(description="Its place among all candidates, before any reranker; null: it was none.")
    cut: Cut | None = Field(description="What kept it out of the context; null: it is in.")


class LegFateRead(BaseModel):
    """What a leg of the search found of the document."""

    model_config = ConfigDict(from_attributes=True)

    leg: str
    passages: int
    best_rank: int | None


class GraphFateRead(BaseModel):
    """An entity, or a relation by both names, that the document speaks of and that was found."""

    model_config = ConfigDict(from_attributes=True)

    names: list[str]
    found_by: list[SourceRead]
    is_in_context: bool


class ExplanationRead(BaseModel):
    """Each passage of the document, and what the legs of the search made of it."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {
                    "query_id": "6a2f0c0e-2d0e-4f57-8f0c-5f4f8c0f6f01",
                    "mode": "baseline",
                    "document_id": DOCUMENT_ID,
                    "version_id": VERSION_ID,
                    "untrusted": None,
                    "wanted": 10,
                    "candidates": 214,
                    "legs": [
                        {"leg": "bm25", "passages": 1, "best_rank": 14},
                        {"leg": "vectors", "passages": 0, "best_rank": None},
                    ],
                    "passages": [
                        {
                            "passage_id": 4711,
                            "ordinal": 0,
                            "found_by": [{"leg": "bm25", "rank": 14, "score": 3.1}],
                            "rank": 12,
                            "cut": "below_k",
                        }
                    ],
                    "entities": [],
                    "relations": [],
                    "missing_legs": [],
                }
            ]
        },
    )

    query_id: UUID = Field(description="Of what this took, in `GET /v1/usage`.")
    mode: str
    document_id: UUID
    version_id: UUID = Field(description="The one that the engine answers from, else the newest.")
    untrusted: str | None = Field(description="Why the engine does not answer from it, where it does not.")
    wanted: int = Field(description="Passages that an answer brings at most.")
    candidates: int = Field(description="Passages that the legs found together.")
    legs: list[LegFateRead]
    passages: list[PassageFateRead]
    entities: list[GraphFateRead]
    relations: list[GraphFateRead]
    missing_legs: list[str] = Field(description="Legs of the search that were not done within `timeout_ms`.")


@router.post(
    "",
    summary="Explain a document's part in an answer",
    openapi_extra=READS_ONLY,
    responses=problems(*QUERY_ERRORS, DocumentNotFound),
)
async def explain(
    workspace_id: WorkspaceDep, asked: ExplainQuery, caller: ReaderCaller, container: ContainerDep, request: Request
) -> ExplanationRead:
    """For each leg whether the document's passages were candidates, their rank, and what cut them. It asks the question
    two or three times, and is not in the log of queries. `timeout_ms` is for all of it: what a leg that was not done in
    time would have found is not in the explanation, which names such legs."""
    work = container.explainer().explain(caller.tenant_id, workspace_id, asked.question(), asked.document_id)
    found = await while_connected(request, work)
    return ExplanationRead.model_validate(found)
