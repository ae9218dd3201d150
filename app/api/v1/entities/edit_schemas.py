"""What creating and editing entities and relations looks like over HTTP."""

from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.api.fields import Body
from app.api.v1.documents.schemas import DOCUMENT_ID, VERSION_ID
from app.api.v1.entities.schemas import EntityChunk, EntityName, EntityRead, EntityRelation, EntityText, EntityType
from app.domain.workspaces.settings import Line
from app.retrieval.contract import RelationEvidence

Keywords = Annotated[Line, Field(max_length=1000)]
Weight = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]


class EntityCreate(Body):
    """An entity that no document has to speak of."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "Hall B", "type": "Building", "description": "Where the presses stand."}]
        }
    )

    name: EntityName
    type: EntityType | None = None
    description: EntityText

    def fields(self) -> dict[str, Any]:
        return self.model_dump(exclude={"name"}, exclude_none=True)


class Edits(Body):
    """Fields that are sent are set; null takes back what was said by hand, so that documents speak again."""

    @model_validator(mode="after")
    def says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("name at least one field to change")
        return self

    def fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in sorted(self.model_fields_set)}


class EntityEdit(Edits):
    """What is to be said of an entity. It holds whatever documents say."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"description": "A hydraulic press in hall B, out of use."}]}
    )

    type: EntityType | None = None
    description: EntityText | None = None


class RelationCreate(Body):
    """A relation that no document has to speak of; both entities are there."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"source": "Press 4", "target": "Hall B", "description": "Press 4 stands in hall B."}]
        }
    )

    source: EntityName
    target: EntityName
    description: EntityText
    keywords: Keywords | None = None
    weight: Weight = 1.0

    def fields(self) -> dict[str, Any]:
        return self.model_dump(exclude={"source", "target"}, exclude_none=True)


class RelationEdit(Edits):
    """What is to be said of a relation. It holds whatever documents say."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"keywords": "location", "weight": 2.5}]})

    description: EntityText | None = None
    keywords: Keywords | None = None
    weight: Weight | None = None


class RelationRead(EntityRelation):
    """A relation, its ends in the order in which the graph keeps them."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {
                    "source": "Hall B",
                    "target": "Press 4",
                    "description": "Press 4 stands in hall B.",
                    "keywords": "location",
                    "weight": 1.0,
                    "document_ids": [DOCUMENT_ID],
                }
            ]
        },
    )

    @classmethod
    def of(cls, relation: RelationEvidence) -> Self:
        return cls.model_validate(relation)


class SplitPart(Body):
    """Parts of documents that speak of another thing, and its name."""

    name: EntityName
    chunks: list[EntityChunk] = Field(min_length=1, max_length=1000)


class EntitySplit(Body):
    """An entity whose name means several things; chunks that are not named stay with it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Press 4",
                    "parts": [{"name": "Press 4 (Lindau)", "chunks": [{"version_id": VERSION_ID, "ordinal": 0}]}],
                }
            ]
        }
    )

    name: EntityName
    parts: list[SplitPart] = Field(min_length=1, max_length=50)

    def assigned(self) -> dict[str, list[tuple[UUID, int]]]:
        found: dict[str, list[tuple[UUID, int]]] = {}
        for part in self.parts:
            found.setdefault(part.name, []).extend((chunk.version_id, chunk.ordinal) for chunk in part.chunks)
        return found


SPLIT_EXAMPLE: dict[str, Any] = {"change_id": DOCUMENT_ID, "entities": []}


class SplitRead(BaseModel):
    """The change, by which the split can be undone, and the entities that the parts became."""

    model_config = ConfigDict(json_schema_extra={"examples": [SPLIT_EXAMPLE]})

    change_id: UUID
    entities: list[EntityRead]
