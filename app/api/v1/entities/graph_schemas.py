"""What looking around in the graph looks like over HTTP."""

from typing import Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from app.api.pagination import Page
from app.api.v1.documents.schemas import DOCUMENT_ID, VERSION_ID
from app.api.v1.entities.schemas import EntityRelation
from app.retrieval.contract import EntityEvidence
from app.retrieval.entity_graph_contract import EntityMention, FoundName, Surroundings


class FoundEntity(BaseModel):
    """An entity whose name is like what was looked for; 1 is the very name."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    score: float


class FoundEntities(BaseModel):
    """Best first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [{"name": "Elena Petrova", "score": 0.93}]}]})

    items: list[FoundEntity]

    @classmethod
    def of(cls, found: list[FoundName]) -> Self:
        return cls(items=[FoundEntity.model_validate(each) for each in found])


class MentionRead(BaseModel):
    """What one part of a document said of the entity, or of its relation to another one."""

    model_config = ConfigDict(from_attributes=True)

    document_id: UUID
    version_id: UUID
    chunk_ordinal: int
    name: str
    target: str | None
    description: str
    keywords: str | None

    @classmethod
    def of(cls, mention: EntityMention) -> Self:
        return cls.model_validate(mention)


class MentionPage(Page[MentionRead]):
    """Mentions, oldest first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {
                            "document_id": DOCUMENT_ID,
                            "version_id": VERSION_ID,
                            "chunk_ordinal": 0,
                            "name": "Press 4",
                            "target": None,
                            "description": "A hydraulic press in hall B.",
                            "keywords": None,
                        }
                    ],
                    "next_cursor": None,
                }
            ]
        }
    )


class GraphEntity(BaseModel):
    """An entity with the documents that speak of it; `distance` counts relations from where the walk began."""

    name: str
    type: str
    description: str
    document_ids: tuple[UUID, ...]
    distance: int

    @classmethod
    def of(cls, entity: EntityEvidence, distance: int) -> Self:
        return cls(
            name=entity.name,
            type=entity.type or "",
            description=entity.description,
            document_ids=entity.document_ids,
            distance=distance,
        )


class SurroundingsRead(BaseModel):
    """Entities around one with the relations between them; `is_cut` if `limit` left something out."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"entities": [], "relations": [], "is_cut": False}]})

    entities: list[GraphEntity]
    relations: list[EntityRelation]
    is_cut: bool

    @classmethod
    def of(cls, found: Surroundings) -> Self:
        return cls(
            entities=[GraphEntity.of(entity, distance) for entity, distance in found.entities],
            relations=[EntityRelation.model_validate(relation) for relation in found.relations],
            is_cut=found.is_cut,
        )


class PathsRead(BaseModel):
    """Shortest ways between two entities, each as the names on it; none if they are not connected within `max_length`.

    `is_cut` if there was more around them than a request may look at: shorter or further ways may be missing.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"paths": [["Elena Petrova", "Harbor Works", "Hamburg"]], "is_cut": False}]}
    )

    paths: list[tuple[str, ...]]
    is_cut: bool
