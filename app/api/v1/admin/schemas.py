"""What tenants look like to an operator."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.fields import Body, Name
from app.api.pagination import Page

TENANT: dict[str, Any] = {
    "id": "3f6cbd1e-5a0c-43c8-9a76-7a1f59a4c2b0",
    "name": "Harbor Works",
    "status": "active",
    "created_at": "2026-11-30T12:00:00Z",
}


class TenantCreate(Body):
    """A new tenant."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Harbor Works"}]})

    name: Name


class TenantRead(BaseModel):
    """A customer of the installation."""

    model_config = ConfigDict(from_attributes=True, json_schema_extra={"examples": [TENANT]})

    id: UUID
    name: str
    status: Literal["active", "suspended", "deleting"]
    created_at: datetime


class TenantPage(Page[TenantRead]):
    """Tenants in order of creation."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [TENANT], "next_cursor": None}]})


class DeletionRead(BaseModel):
    """How far the removal of a tenant is. It outlives the tenant."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {
                    "tenant_id": "3f6cbd1e-5a0c-43c8-9a76-7a1f59a4c2b0",
                    "requested_at": "2026-11-30T12:00:00Z",
                    "finished_at": "2026-11-30T12:00:09Z",
                    "workspaces_left": 0,
                    "documents_left": 0,
                    "proof": {"documents.tenant_id": 0, "lightrag_doc_chunks.workspace": 0, "objects": 0},
                }
            ]
        },
    )

    tenant_id: UUID
    requested_at: datetime
    finished_at: datetime | None
    workspaces_left: int
    documents_left: int
    proof: Mapping[str, int] | None = Field(
        description="Once all is gone: rows counted in every table that can hold any of a tenant, and objects. All 0."
    )
