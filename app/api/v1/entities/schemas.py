"""What entities look like over HTTP."""

from datetime import datetime
from typing import Annotated, Any, Self
from urllib.parse import quote
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from app.api.fields import Body
from app.api.pagination import Page
from app.api.v1.documents.schemas import DOCUMENT_ID, VERSION_ID
from app.api.v1.workspaces.schemas import EXAMPLE_ID as WORKSPACE_ID
from app.db.base import WorkspaceId
from app.domain.workspaces.settings import Line, without_binary
from app.retrieval.entity_contract import AliasSource, EntityAlias, EntityDetail, EntitySummary

MAX_NAME_CHARS = 1000
MAX_TEXT_CHARS = 20_000
MAX_QUOTED_CHARS = 2_000
# Whatever a document calls a thing; a tabulator may be part of it.
EntityName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME_CHARS),
    AfterValidator(without_binary),
]
EntityText = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT_CHARS),
    AfterValidator(without_binary),
]
EntityType = Annotated[Line, Field(max_length=60)]
_SUMMARY: dict[str, Any] = {
    "name": "Press 4",
    "type": "Machine",
    "description": "A hydraulic press in hall B.",
    "degree": 3,
    "link": f"/v1/workspaces/{WORKSPACE_ID}/entity?name=Press%204",
}


class EntityItem(BaseModel):
    """An entity in a list; `degree` counts its relations."""

    name: str
    type: str
    description: str
    degree: int
    link: str

    @classmethod
    def of(cls, entity: EntitySummary, workspace_id: WorkspaceId) -> Self:
        return cls(
            name=entity.name,
            type=entity.type,
            description=entity.description,
            degree=entity.degree,
            link=_link(workspace_id, entity),
        )


def _link(workspace_id: WorkspaceId, entity: EntitySummary) -> str:
    name = quote(entity.name, safe="")
    # Some servers between here and there take no longer addresses than 4 to 8 kB.
    if len(name) > MAX_QUOTED_CHARS:
        name = quote(entity.key, safe="")
    return f"/v1/workspaces/{workspace_id}/entity?name={name}"


class EntityPage(Page[EntityItem]):
    """Entities by name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [_SUMMARY], "next_cursor": None}]})


class EntityRelation(BaseModel):
    """A relation of the entity, and the documents that speak of it."""

    model_config = ConfigDict(from_attributes=True)

    source: str
    target: str
    description: str
    keywords: str
    weight: float
    document_ids: tuple[UUID, ...]


class EntityChunk(BaseModel):
    """A part of a document that speaks of the entity."""

    version_id: UUID
    ordinal: int


class EntityRead(BaseModel):
    """An entity with its relations and the parts of documents that speak of it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Press 4",
                    "type": "Machine",
                    "description": "A hydraulic press in hall B.",
                    "relations": [
                        {
                            "source": "Press 4",
                            "target": "Seal",
                            "description": "The seals of press 4 wear out.",
                            "keywords": "wear",
                            "weight": 1.0,
                            "document_ids": [DOCUMENT_ID],
                        }
                    ],
                    "chunks": [{"version_id": VERSION_ID, "ordinal": 0}],
                }
            ]
        }
    )

    name: str
    type: str
    description: str
    relations: list[EntityRelation]
    chunks: list[EntityChunk]

    @classmethod
    def of(cls, entity: EntityDetail) -> Self:
        return cls(
            name=entity.name,
            type=entity.type,
            description=entity.description,
            relations=[EntityRelation.model_validate(relation) for relation in entity.relations],
            chunks=[EntityChunk(version_id=version_id, ordinal=ordinal) for version_id, ordinal in entity.chunks],
        )


class AliasCreate(Body):
    """A name, and what it means."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"alias": "K8s", "target": "Kubernetes"}]})

    alias: EntityName = Field(description="As documents and questions say it; case, width and spaces do not matter.")
    target: EntityName = Field(description="The entity, which need not be there yet.")


class AliasRead(BaseModel):
    """A name that means an entity. `source` tells whether a merge or a person said so."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {"alias": "K8s", "target": "Kubernetes", "source": "manual", "created_at": "2026-11-30T12:00:00Z"}
            ]
        },
    )

    alias: str
    target: str
    source: AliasSource
    created_at: datetime

    @classmethod
    def of(cls, alias: EntityAlias) -> Self:
        return cls.model_validate(alias)


class AliasPage(Page[AliasRead]):
    """Aliases in their order."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {
                            "alias": "K8s",
                            "target": "Kubernetes",
                            "source": "manual",
                            "created_at": "2026-11-30T12:00:00Z",
                        }
                    ],
                    "next_cursor": None,
                }
            ]
        }
    )
