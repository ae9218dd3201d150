"""What keys look like over HTTP."""

from datetime import UTC, datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from app.api.fields import Body, Name
from app.api.pagination import Page
from app.db.models import ApiKey
from app.domain.tenants.records import KeyDraft, Role

EXAMPLE: dict[str, Any] = {
    "id": "c1b0e0a5-51f5-4a2e-8f0d-6b1f5a7d9e33",
    "name": "product backend",
    "prefix": "98e9d0148a0a",
    "role": "editor",
    "workspace_id": None,
    "expires_at": "2027-11-30T00:00:00Z",
    "revoked_at": None,
    "last_used_at": "2026-11-30T13:00:00Z",
    "created_at": "2026-11-30T12:00:00Z",
}


def _to_come(value: datetime) -> datetime:
    if value <= datetime.now(UTC):
        raise ValueError("must be in the future")
    return value


class KeyCreate(Body):
    """A new key of the tenant."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "product backend", "role": "editor", "expires_at": "2027-11-30T00:00:00Z"}]
        }
    )

    name: Name
    role: Role
    workspace_id: UUID | None = Field(default=None, description="The one workspace that the key is for; null: all.")
    expires_at: Annotated[AwareDatetime, AfterValidator(_to_come)] | None = Field(
        default=None, description="In the future; its time zone is part of it; null: never."
    )

    def draft(self) -> KeyDraft:
        return KeyDraft(self.name, self.role, self.workspace_id, self.expires_at)


class KeyRotate(Body):
    """How to change over from a key to its successor."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"overlap_seconds": 3600}]})

    overlap_seconds: Annotated[int, Field(ge=0, le=30 * 86400)] = Field(
        default=0, description="How long the old key goes on working, so that its users can change over."
    )


class KeyRead(BaseModel):
    """A key without its secret, which nobody can read again."""

    model_config = ConfigDict(from_attributes=True, json_schema_extra={"examples": [EXAMPLE]})

    id: UUID
    name: str
    prefix: str = Field(description="The part of the key after `trl_`; tells keys apart without giving them away.")
    role: Role
    workspace_id: UUID | None
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="To about a minute.")
    created_at: datetime


class KeyCreated(KeyRead):
    """A new key. `key` is shown this once."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**EXAMPLE, "key": "trl_98e9d0148a0a_…"}]})

    key: str

    @classmethod
    def made(cls, row: ApiKey, text: str) -> Self:
        return cls(**KeyRead.model_validate(row).model_dump(), key=text)


class KeyPage(Page[KeyRead]):
    """Keys in order of creation, the revoked and expired ones too."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [EXAMPLE], "next_cursor": None}]})
