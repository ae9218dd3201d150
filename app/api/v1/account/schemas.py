"""What the caller is, and what there is to choose from."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.domain.tenants.records import Role
from app.retrieval.contract import Engine


class Me(BaseModel):
    """Who this key belongs to and what it may do."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "tenant": {"id": "3f6cbd1e-5a0c-43c8-9a76-7a1f59a4c2b0", "name": "Harbor Works"},
                    "key_id": "c1b0e0a5-51f5-4a2e-8f0d-6b1f5a7d9e33",
                    "subject": None,
                    "role": "admin",
                    "workspace_id": None,
                }
            ]
        }
    )

    class Tenant(BaseModel):
        """The tenant that owns the key."""

        id: UUID
        name: str

    tenant: Tenant
    key_id: UUID | None = Field(description="Null for a user who came with a token.")
    subject: str | None = Field(description="The user, as the token's issuer names it; null for a key.")
    role: Role
    workspace_id: UUID | None = Field(description="The one workspace that the key is bound to, if it is.")


class Mode(BaseModel):
    """A way to find evidence."""

    name: str
    engine: Engine | None = Field(
        description="What a workspace needs for it; null for `auto`, which picks one of the others."
    )


class Modes(BaseModel):
    """Every mode of a query."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"modes": [{"name": "mix", "engine": "graph"}]}]})

    modes: list[Mode]


class Model(BaseModel):
    """A model that a workspace may use."""

    name: str
    role: Literal["chat", "embedding", "rerank"]
    is_offline: bool = Field(description="Rules or a small model within Trellis: no key, no network, no cost.")


class Models(BaseModel):
    """The models that the operator of this installation offers."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"models": [{"name": "offline-use", "role": "embedding", "is_offline": True}]}]}
    )

    models: list[Model]
