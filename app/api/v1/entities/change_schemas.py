"""What merges and the history of entities look like over HTTP."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.fields import Body
from app.api.pagination import Page
from app.api.v1.entities.schemas import EntityName, EntityRead, EntityText, EntityType
from app.db.models import EntityChange
from app.domain.entities.changes import Merged
from app.retrieval.entity_contract import MergePreview, MergeRequest, Strategy

EXAMPLE_CHANGE = "0b0c7b44-3c41-4a52-a0a9-6a0e3e8f2b11"


class MergeStrategies(Body):
    """How a field of the merged entity comes about. What is named here holds for good, as an edit does."""

    type: Literal["keep_target", "keep_first", "keep_last"] | None = None
    description: Strategy | None = None


class MergeValues(Body):
    """What the merged entity is to say, whatever its sources said."""

    type: EntityType | None = None
    description: EntityText | None = None


class EntityMerge(Body):
    """Entities that are one thing. All relations and sources of `sources` become those of `target`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sources": ["E. Petrova"], "target": "Elena Petrova"}]})

    sources: list[EntityName] = Field(min_length=1, max_length=50)
    target: EntityName = Field(description="Made if it does not exist.")
    strategies: MergeStrategies = Field(default_factory=MergeStrategies)
    values: MergeValues = Field(default_factory=MergeValues)
    dry_run: bool = Field(default=False, description="Only say what the merge would do.")

    def request(self) -> MergeRequest:
        return MergeRequest(
            tuple(self.sources),
            self.target,
            self.strategies.model_dump(exclude_none=True),  # type: ignore[arg-type]
            self.values.model_dump(exclude_none=True),  # type: ignore[arg-type]
        )


class PreviewRelation(BaseModel):
    """A relation as the merge would leave it; several of `merged_from` would become one. `chunks`: distinct evidence."""

    source: str
    target: str
    weight: float
    chunks: int
    merged_from: list[tuple[str, str]]


class MergePreviewRead(BaseModel):
    """What a merge would do. `avoided_self_loops` are relations among the merged, which would go."""

    dry_run: Literal[True] = True
    name: str
    type: str
    description: str
    is_new: bool
    chunks: int
    relations: list[PreviewRelation]
    avoided_self_loops: list[tuple[str, str]]

    @classmethod
    def of(cls, preview: MergePreview) -> Self:
        return cls(
            name=preview.name,
            type=preview.type,
            description=preview.description,
            is_new=preview.is_new,
            chunks=preview.chunks,
            relations=[
                PreviewRelation.model_validate(relation, from_attributes=True) for relation in preview.relations
            ],
            avoided_self_loops=list(preview.avoided_self_loops),
        )


class MergedEntity(EntityRead):
    """The merged entity, and the change by which the merge can be undone."""

    model_config = ConfigDict(json_schema_extra={})

    change_id: UUID

    @classmethod
    def of_merge(cls, merged: Merged) -> Self:
        return cls(**EntityRead.of(merged.entity).model_dump(), change_id=merged.change_id)


class ChangeRead(BaseModel):
    """A change of entities or relations: `queued`, `writing`, `done`, `failed`, or `undone` by a later one.

    It is seen `writing` in Apache AGE only, where it is not one transaction; if it is stopped then, a worker puts it back.
    """

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {
                    "id": EXAMPLE_CHANGE,
                    "kind": "merge",
                    "state": "done",
                    "names": ["E. Petrova", "Elena Petrova"],
                    "request": {"sources": ["E. Petrova"], "target": "Elena Petrova", "strategies": {}, "values": {}},
                    "actor": "key:7d1f0e2c-9a55-4c6e-8a53-0f5b6c1d2e3f",
                    "undoes": None,
                    "error_code": None,
                    "error_detail": None,
                    "created_at": "2026-11-30T12:00:00Z",
                    "finished_at": "2026-11-30T12:00:01Z",
                    "forgotten_at": None,
                }
            ]
        },
    )

    id: UUID
    kind: str
    state: Literal["queued", "writing", "done", "failed", "undone"]
    names: list[str]
    request: Mapping[str, Any]
    actor: str | None
    undoes: UUID | None
    error_code: str | None
    error_detail: str | None
    created_at: datetime
    finished_at: datetime | None
    forgotten_at: datetime | None = Field(
        description="When a name that it told was removed with the last document that spoke of it; `names` keeps the others."
    )

    @classmethod
    def of(cls, change: EntityChange) -> Self:
        return cls.model_validate(change)


class ChangePage(Page[ChangeRead]):
    """Changes, newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [], "next_cursor": None}]})


# By what was asked for.
MERGE_EXAMPLES: dict[str, Any] = {
    "merged": {
        "value": {
            "name": "Elena Petrova",
            "type": "Person",
            "description": "Leads a research group.",
            "relations": [],
            "chunks": [],
            "change_id": EXAMPLE_CHANGE,
        }
    },
    "dry_run": {
        "value": {
            "dry_run": True,
            "name": "Elena Petrova",
            "type": "Person",
            "description": "Leads a research group.",
            "is_new": False,
            "chunks": 3,
            "relations": [
                {
                    "source": "Elena Petrova",
                    "target": "Harbor Works",
                    "weight": 2.0,
                    "chunks": 2,
                    "merged_from": [["E. Petrova", "Harbor Works"], ["Elena Petrova", "Harbor Works"]],
                }
            ],
            "avoided_self_loops": [["E. Petrova", "Elena Petrova"]],
        }
    },
}
