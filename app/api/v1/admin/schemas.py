"""What tenants look like to an operator."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.fields import Body, Name
from app.api.pagination import Page

TENANT: dict[str, Any] = {
    "id": "3f6cbd1e-5a0c-43c8-9a76-7a1f59a4c2b0",
    "name": "Harbor Works",
    "status": "active",
    "plan": "standard",
    "created_at": "2026-11-30T12:00:00Z",
}


PLAN: dict[str, Any] = {
    "name": "standard",
    "requests_per_minute": 600,
    "concurrent_ingestions": 8,
    "documents": 10000,
    "stored_bytes": 10737418240,
    "model_tokens_per_month": None,
    "updated_at": "2026-11-30T12:00:00Z",
}
Count = Annotated[int, Field(ge=0, le=10**15)]


class PlanPut(Body):
    """Limits; one that is null or left out is not limited."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"requests_per_minute": 600, "documents": 10000, "stored_bytes": 10737418240}]}
    )

    requests_per_minute: Annotated[int, Field(ge=1, le=10**6)] | None = None
    concurrent_ingestions: Annotated[int, Field(ge=1, le=10**6)] | None = Field(
        default=None, description="Documents that are indexed at once; the others wait."
    )
    documents: Count | None = None
    stored_bytes: Count | None = Field(default=None, description="Of originals.")
    model_tokens_per_month: Count | None = Field(
        default=None, description="Sent to and received from models that are not offline; then work pauses."
    )


class PlanRead(BaseModel):
    """A plan."""

    model_config = ConfigDict(from_attributes=True, json_schema_extra={"examples": [PLAN]})

    name: str
    requests_per_minute: int | None
    concurrent_ingestions: int | None
    documents: int | None
    stored_bytes: int | None
    model_tokens_per_month: int | None
    updated_at: datetime


class Plans(BaseModel):
    """All plans, by name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"plans": [PLAN]}]})

    plans: list[PlanRead]


class PlanChoice(Body):
    """The plan of a tenant."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"plan": "standard"}]})

    plan: Name | None = Field(description="Null takes every limit away.")


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
    plan: str | None
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
