"""What became of a document, step by step."""

from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.api.deps import ReaderCaller, TenantUnit, WorkspaceDep
from app.api.problems import problems
from app.api.v1.documents.schemas import VERSION_ID
from app.domain.documents.errors import DocumentNotFound
from app.domain.documents.repository import DocumentRepository
from app.domain.ingestion.history_repository import HistoryRepository, Transition

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/documents", tags=["documents"])
State = Literal["queued", "running", "ready", "partial", "failed", "cancelled"]
_EXAMPLE: dict[str, Any] = {
    "version_id": VERSION_ID,
    "version": 1,
    "engine": "graph",
    "from_state": "running",
    "to_state": "queued",
    "is_purging": False,
    "stage": "extracting",
    "attempt": 1,
    "reason": "model_unavailable",
    "detail": "1 of 6 chunks could not be extracted: 1 model_unavailable (The provider of the model 'm' answered 503: …)",
    "at": "2026-11-30T13:00:02Z",
}


class TransitionRead(BaseModel):
    """One change of the state of one engine's index."""

    version_id: UUID
    version: int = Field(description="The version's ordinal.")
    engine: Literal["lazy", "graph"]
    from_state: State | None
    to_state: State
    is_purging: bool = Field(description="From here on the graph may hold something of the version that is removed.")
    stage: str = Field(description="What was being done when the state changed.")
    attempt: int
    reason: str = Field(description="For programs; the code of an error, or what happened.")
    detail: str = Field(description="For people.")
    at: datetime

    @classmethod
    def of(cls, transition: Transition) -> Self:
        row = transition.row
        plain = {name: getattr(row, name) for name in cls.model_fields if hasattr(row, name)}
        return cls.model_validate(
            {
                **plain,
                "version": transition.version_ordinal,
                "is_purging": row.cleanliness == "purging",
                "detail": transition.sentence,
            }
        )


class DocumentHistory(BaseModel):
    """What became of the document's versions, in the order in which it happened."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [_EXAMPLE]}]})

    items: list[TransitionRead]


@router.get("/{document_id}/history", summary="Read a document's history", responses=problems(DocumentNotFound))
async def read_history(
    workspace_id: WorkspaceDep, document_id: UUID, _: ReaderCaller, session: TenantUnit
) -> DocumentHistory:
    """Every change of a state, written together with the change. The last 200 of each index are kept."""
    await DocumentRepository(session, workspace_id).status(document_id)
    found = await HistoryRepository(session).of_document(document_id)
    return DocumentHistory(items=[TransitionRead.of(transition) for transition in found])
