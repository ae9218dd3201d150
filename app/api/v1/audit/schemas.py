"""What the audit log looks like over HTTP."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.pagination import Page

EXAMPLE: dict[str, Any] = {
    "id": "4711",
    "at": "2026-11-30T12:00:00Z",
    "actor": "key:c1b0e0a5-51f5-4a2e-8f0d-6b1f5a7d9e33",
    "address": "203.0.113.7",
    "request_id": "0f8fad5bd9cb469f",
    "action": "update_document",
    "change": "update",
    "kind": "document",
    "subject": "9a0b7f3e-6f0e-4f0f-9a53-0d9f3a3f7c11",
    "workspace_id": "1f0f8f5a-3c44-4d6e-9a59-0a6c1f4b2d11",
    "before": {"title": "Shift report"},
    "after": {"title": "Shift report, 30 November"},
    "redacted_at": None,
}


class AuditEventRead(BaseModel):
    """One row that a caller changed."""

    model_config = ConfigDict(
        from_attributes=True, coerce_numbers_to_str=True, json_schema_extra={"examples": [EXAMPLE]}
    )

    id: str
    at: datetime
    actor: str = Field(description="`key:<id>`, `user:<subject of the token>` or `operator`.")
    address: str | None = Field(description="Where the request came from; null for commands of an operator.")
    request_id: str | None
    action: str = Field(description="The route, by the name of its operation, or the operator's command.")
    change: Literal["insert", "update", "delete"]
    kind: str = Field(description="tenant, key, workspace, document, version, index, entity, …")
    subject: str = Field(description="The id of what was changed; the name of an entity.")
    workspace_id: UUID | None
    before: dict[str, Any] | None = Field(description="Of an update: the fields that changed, as they were.")
    after: dict[str, Any] | None
    redacted_at: datetime | None = Field(
        description="When what it quoted of a document was removed with that document; a name is an empty `subject` then."
    )


class AuditPage(Page[AuditEventRead]):
    """Events, newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [EXAMPLE], "next_cursor": None}]})
