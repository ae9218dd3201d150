"""What workspaces look like over HTTP."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from app.api.fields import Body, Name
from app.api.pagination import Page
from app.domain.workspaces.repository import WorkspaceRecord
from app.domain.workspaces.settings import WorkspaceSettings
from app.retrieval.contract import Engine, GraphStoreName

EXAMPLE_ID = "1f0f8f5a-3c44-4d6e-9a59-0a6c1f4b2d11"
EXAMPLE: dict[str, Any] = {
    "id": EXAMPLE_ID,
    "name": "Handbooks",
    "engines": ["lazy", "graph"],
    "graph_store": "table",
    "default_mode": "mix",
    "settings": WorkspaceSettings().model_dump(mode="json"),
    "embedding_model": "offline-use",
    "chat_model": "offline-extractor",
    "rerank_model": None,
    "status": "active",
    "created_at": "2026-11-30T13:00:00Z",
    "updated_at": "2026-11-30T13:00:00Z",
}


def _engines(engines: list[Engine]) -> list[Engine]:
    if len(set(engines)) < len(engines):
        raise ValueError("must not name an engine twice")
    if "lazy" not in engines:
        raise ValueError("must hold 'lazy': its index is cheap, and citations need its passages")
    return engines


class WorkspaceCreate(Body):
    """A new workspace. The engines and models are chosen here; the rest can be changed later."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "Handbooks", "engines": ["lazy", "graph"]},
                {
                    "name": "Tickets",
                    "engines": ["lazy"],
                    "default_mode": "baseline",
                    "settings": {"chunk_strategy": "sentence", "chunk_tokens": 800},
                },
            ]
        }
    )

    name: Name
    engines: Annotated[list[Engine], AfterValidator(_engines)] = Field(
        default=["lazy"], description="`lazy` indexes without a language model; `graph` adds the knowledge graph."
    )
    graph_store: GraphStoreName = Field(
        default="table", description="Where the graph is kept: `table`, or `age` where Apache AGE is installed."
    )
    default_mode: str | None = Field(
        default=None, max_length=40, description="Mode of queries that name none; `mix` with the graph, else `lazy`."
    )
    settings: WorkspaceSettings = WorkspaceSettings()
    embedding_model: str | None = Field(default=None, max_length=200, description="A model of `GET /v1/models`.")
    chat_model: str | None = Field(default=None, max_length=200, description="A model of `GET /v1/models`.")
    rerank_model: str | None = Field(default=None, max_length=200, description="A model of `GET /v1/models`.")

    @model_validator(mode="after")
    def _refuse_a_store_without_a_graph(self) -> Self:
        if self.graph_store != "table" and "graph" not in self.engines:
            raise ValueError("graph_store needs the engine 'graph'")
        return self


class WorkspaceUpdate(Body):
    """What to change. Of `settings` only the keys given are changed."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"default_mode": "local", "settings": {"chunk_tokens": 800}}]}
    )

    name: Name | None = None
    default_mode: str | None = Field(default=None, max_length=40)
    settings: WorkspaceSettings | None = None
    rerank_model: str | None = Field(default=None, max_length=200, description="null takes it away.")

    def given_settings(self) -> dict[str, Any] | None:
        return None if self.settings is None else self.settings.model_dump(mode="json", exclude_unset=True)


class WorkspaceRead(BaseModel):
    """A workspace. While it is `deleting` it refuses all work; then it is gone."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    id: UUID
    name: str
    engines: list[Engine]
    graph_store: GraphStoreName
    default_mode: str
    settings: WorkspaceSettings
    embedding_model: str
    chat_model: str | None
    rerank_model: str | None
    status: Literal["active", "deleting"]
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, record: WorkspaceRecord) -> Self:
        row = record.row
        return cls.model_validate(
            {
                **{name: getattr(row, name) for name in cls.model_fields if hasattr(row, name)},
                "settings": WorkspaceSettings.stored(row.settings),
                "embedding_model": record.embedding_model,
                "chat_model": record.chat_model,
                "rerank_model": record.rerank_model,
            }
        )


class WorkspacePage(Page[WorkspaceRead]):
    """Workspaces in order of creation."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [EXAMPLE], "next_cursor": None}]})


class ReindexAccepted(BaseModel):
    """How many documents were queued to be indexed anew; the old versions answer until the new ones are ready."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"queued": 12}]})

    queued: int
