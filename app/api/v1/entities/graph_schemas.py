"""What looking around in the graph, and duplicates, look like over HTTP."""

from typing import Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.fields import Body
from app.api.pagination import Page
from app.api.v1.documents.schemas import DOCUMENT_ID, VERSION_ID
from app.api.v1.entities.change_schemas import EXAMPLE_CHANGE
from app.api.v1.entities.schemas import EntityName, EntityRelation
from app.domain.entities.looking import GroupMerged, GroupRefused
from app.retrieval.contract import EntityEvidence
from app.retrieval.entity_graph_contract import DuplicateGroup, EntityMention, FoundName, Surroundings


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
    """Shortest ways between two entities, each as the names on it; none if they are not connected within `max_length`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"paths": [["Elena Petrova", "Harbor Works", "Hamburg"]]}]}
    )

    paths: list[tuple[str, ...]]


class DuplicatePairRead(BaseModel):
    """Two entities that may be one. `reasons`: how the names are alike, then what the graph says."""

    model_config = ConfigDict(from_attributes=True)

    one: str
    other: str
    score: float
    reasons: tuple[str, ...]


_GROUP: dict[str, Any] = {
    "names": ["Elena Petrova", "E. Petrova"],
    "score": 0.94,
    "pairs": [
        {"one": "E. Petrova", "other": "Elena Petrova", "score": 0.94, "reasons": ["abbreviation", "shared_neighbours"]}
    ],
}


class DuplicateGroupRead(BaseModel):
    """Entities that may be one, the one with most relations first."""

    model_config = ConfigDict(from_attributes=True)

    names: tuple[str, ...]
    score: float
    pairs: tuple[DuplicatePairRead, ...]


class DuplicateGroups(BaseModel):
    """Best first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [_GROUP]}]})

    items: list[DuplicateGroupRead]

    @classmethod
    def of(cls, groups: list[DuplicateGroup]) -> Self:
        return cls(items=[DuplicateGroupRead.model_validate(group) for group in groups])


class DuplicatesMerge(Body):
    """All groups of at least this score, each into the entity of it that has most relations."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"min_score": 0.97}]})

    min_score: float = Field(ge=0.75, le=1, description="Nobody looks at the pairs: choose it high.")
    limit: int = Field(default=20, ge=1, le=100, description="Groups at most.")


class GroupOutcome(BaseModel):
    """What became of one group: `merged` into `name`, `queued` for a worker, or `refused` for the reason `code`."""

    names: list[str]
    outcome: Literal["merged", "queued", "refused"]
    name: str | None = None
    change_id: UUID | None = None
    code: str | None = None
    detail: str | None = None

    @classmethod
    def of(cls, made: GroupMerged | GroupRefused) -> Self:
        if isinstance(made, GroupRefused):
            return cls(names=list(made.names), outcome="refused", code=made.code, detail=made.detail)
        outcome: Literal["merged", "queued"] = "queued" if made.is_queued else "merged"
        return cls(names=list(made.names), outcome=outcome, name=made.name, change_id=made.change_id)


class DuplicatesMerged(BaseModel):
    """Every group with its outcome, best first; each merge can be undone by its change."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {
                            "names": ["Elena Petrova", "Elena Petrowa"],
                            "outcome": "merged",
                            "name": "Elena Petrova",
                            "change_id": EXAMPLE_CHANGE,
                            "code": None,
                            "detail": None,
                        }
                    ]
                }
            ]
        }
    )

    items: list[GroupOutcome]


class Rejection(Body):
    """Two entities that are different things."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"one": "Press 4", "other": "Press 4b"}]})

    one: EntityName
    other: EntityName


class Rejections(BaseModel):
    """Pairs that are not proposed again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [{"one": "Press 4", "other": "Press 4b"}]}]})

    items: list[Rejection]
