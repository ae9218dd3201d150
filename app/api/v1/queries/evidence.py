"""What evidence and citations look like over HTTP."""

from collections.abc import Sequence
from typing import Any, Self
from urllib.parse import quote
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.db.base import WorkspaceId
from app.retrieval.contract import EntityEvidence, PassageEvidence, RelationEvidence, SearchResult


class SourceRead(BaseModel):
    """Which leg of the search found it, at which rank and with which score."""

    model_config = ConfigDict(from_attributes=True)

    leg: str
    rank: int
    score: float | None


class PassageFound(BaseModel):
    """A passage: whole sentences of a document."""

    model_config = ConfigDict(from_attributes=True)

    passage_id: int
    document_id: UUID
    version_id: UUID
    title: str
    filename: str
    ordinal: int
    text: str
    page_start: int | None
    page_end: int | None
    char_start: int
    char_end: int
    heading_path: tuple[str, ...]
    score: float
    is_partial: bool
    sources: tuple[SourceRead, ...]


class EntityFound(BaseModel):
    """An entity of the graph, and the documents that speak of it."""

    model_config = ConfigDict(from_attributes=True)

    id: str = Field(description="The same for the same name in every answer.")
    name: str
    type: str
    description: str
    document_ids: tuple[UUID, ...]
    is_partial: bool
    score: float
    sources: tuple[SourceRead, ...]
    link: str = Field(description="The entity as the whole graph knows it.")

    @classmethod
    def of(cls, entity: EntityEvidence, workspace_id: WorkspaceId) -> Self:
        link = f"/v1/workspaces/{workspace_id}/entity?name={quote(entity.name, safe='')}"
        return cls.model_validate({**_plain(cls, entity), "link": link})


class RelationFound(BaseModel):
    """A relation between two entities, and the documents that speak of it."""

    model_config = ConfigDict(from_attributes=True)

    id: str = Field(description="The same for the same two names in every answer.")
    source: str
    target: str
    description: str
    keywords: str
    weight: float
    document_ids: tuple[UUID, ...]
    is_partial: bool
    score: float
    sources: tuple[SourceRead, ...]
    link: str = Field(description="The relation as the whole graph knows it.")

    @classmethod
    def of(cls, relation: RelationEvidence, workspace_id: WorkspaceId) -> Self:
        ends = f"source={quote(relation.source, safe='')}&target={quote(relation.target, safe='')}"
        link = f"/v1/workspaces/{workspace_id}/relation?{ends}"
        return cls.model_validate({**_plain(cls, relation), "link": link})


class Evidence(BaseModel):
    """All that was found, best first, whether it fitted into the context or not."""

    passages: list[PassageFound]
    entities: list[EntityFound]
    relations: list[RelationFound]

    @classmethod
    def of(cls, result: SearchResult, workspace_id: WorkspaceId) -> Self:
        return cls(
            passages=[PassageFound.model_validate(passage) for passage in result.passages],
            entities=[EntityFound.of(entity, workspace_id) for entity in result.entities],
            relations=[RelationFound.of(relation, workspace_id) for relation in result.relations],
        )


class Citation(BaseModel):
    """What a mark such as [1] in the context stands for; characters are positions in the document's text."""

    number: int
    passage_id: int
    document_id: UUID
    version_id: UUID
    title: str
    filename: str
    page_start: int | None
    page_end: int | None
    char_start: int
    char_end: int
    heading_path: list[str]
    is_partial: bool = Field(description="The graph lacks a part of this document.")
    link: str = Field(description="The passage with its surroundings.")

    @classmethod
    def of(cls, number: int, passage: PassageEvidence, workspace_id: WorkspaceId) -> Self:
        plain = _plain(cls, passage)
        link = f"/v1/workspaces/{workspace_id}/passages/{passage.passage_id}"
        return cls.model_validate({**plain, "number": number, "heading_path": list(passage.heading_path), "link": link})

    @classmethod
    def of_all(cls, cited: Sequence[PassageEvidence], workspace_id: WorkspaceId) -> list[Self]:
        """In the order of their marks in the context."""
        return [cls.of(number, passage, workspace_id) for number, passage in enumerate(cited, start=1)]


def _plain(model: type[BaseModel], evidence: object) -> dict[str, Any]:
    return {name: getattr(evidence, name) for name in model.model_fields if hasattr(evidence, name)}
