"""What duplicates look like over HTTP: groups that may be one entity, decisions, and what became of merges."""

from collections.abc import Sequence
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.fields import Body
from app.api.v1.entities.change_schemas import EXAMPLE_CHANGE
from app.api.v1.entities.schemas import EntityName
from app.domain.entities.duplicates import GroupMerged, GroupRefused
from app.retrieval.entity_graph_contract import DuplicateGroup


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
    "types": ["Person"],
    "is_accepted": False,
}


class DuplicateGroupRead(BaseModel):
    """Entities that may be one, the one with most relations first, and the different types that are known of them."""

    model_config = ConfigDict(from_attributes=True)

    names: tuple[str, ...]
    score: float
    pairs: tuple[DuplicatePairRead, ...]
    types: tuple[str, ...]
    is_accepted: bool = Field(description="People said so of all of them.")


class DuplicateGroups(BaseModel):
    """Best first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [_GROUP]}]})

    items: list[DuplicateGroupRead]

    @classmethod
    def of(cls, groups: list[DuplicateGroup]) -> Self:
        return cls(items=[DuplicateGroupRead.model_validate(group) for group in groups])


class DuplicatesMerge(Body):
    """All groups of at least this score, or those that were accepted, each into the entity of it that has most relations."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"min_score": 0.97}]})

    min_score: float | None = Field(
        default=None,
        ge=0.75,
        le=1,
        description="Nobody looks at the pairs: choose it high. Null: only what was accepted.",
    )
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


class Acceptance(Body):
    """Entities that are one thing."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"names": ["E. Petrova", "Elena Petrova"]}]})

    names: list[EntityName] = Field(min_length=2, max_length=20)


class DecidedPair(Body):
    """Two entities, by any of their names."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"one": "Press 4", "other": "Press 4b"}]})

    one: EntityName
    other: EntityName


class DecidedPairs(BaseModel):
    """Pairs of which somebody decided the same."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [{"one": "Press 4", "other": "Press 4b"}]}]})

    items: list[DecidedPair]

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        return cls(items=[DecidedPair(one=one, other=other) for one, other in pairs])
