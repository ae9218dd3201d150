"""What events look like over HTTP."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.v1.documents.schemas import DOCUMENT_ID, VERSION_ID
from app.api.v1.workspaces.schemas import EXAMPLE_ID as WORKSPACE_ID

EventType = Literal["document.ready", "document.partial", "document.failed", "document.cancelled", "document.deleted"]
EVENT_EXAMPLE: dict[str, Any] = {
    "id": 42,
    "type": "document.ready",
    "workspace_id": WORKSPACE_ID,
    "document_id": DOCUMENT_ID,
    "version_id": VERSION_ID,
    "created_at": "2026-11-30T13:00:02Z",
}


class EventRead(BaseModel):
    """Something became of a document. What it says is told by ids; the document itself has the rest."""

    model_config = ConfigDict(from_attributes=True, json_schema_extra={"examples": [EVENT_EXAMPLE]})

    id: int = Field(description="Grows within the workspace; what is told later has a larger one.")
    type: EventType
    workspace_id: UUID
    document_id: UUID
    version_id: UUID | None = Field(description="Null for a document that was deleted.")
    created_at: datetime
