"""What themes look like over HTTP."""

from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.v1.queries.evidence import SourceRead
from app.db.base import WorkspaceId
from app.retrieval.theme_contract import ThemeEvidence, ThemesFound

MAX_LEVEL = 1000
THEME_ID = "3f0b3f1a-0d6e-4a57-9c1e-6a2f0c0e2d0e"
THEME_EXAMPLE: dict[str, Any] = {
    "id": THEME_ID, "level": 0, "parent_id": None, "label": "seals, press 4, Kestrel Polymers",
    "concepts": [
        {"id": "-5512", "label": "press 4", "kind": "name", "passages": 6, "lift": 7.5, "in_question": False}
    ],
    "passages": 14, "documents": 3, "placed": 0,
    "importance": {
        "size": 0.71, "distinctiveness": 0.52, "density": 0.64, "vocabulary": 0.4, "entropy": 0.88, "importance": 0.61,
    },
    "rank": {
        "score": 0.61, "relevance": None, "coverage": None,
        "sources": [{"leg": "importance", "rank": 1, "score": 0.61}],
    },
    "passage_ids": [],
    "link": f"/v1/workspaces/8f14e45f-ceea-467f-9e0b-6a6a2f3d3c11/themes/{THEME_ID}",
}  # fmt: skip
THEME_MAP_EXAMPLE: dict[str, Any] = {
    "id": "0b5f6a1e-8c3d-4a52-9f0e-2f6f4f1f7a10", "built_at": "2026-12-01T09:00:00Z", "corpus_version": 41,
    "passages": 214, "documents": 31, "documents_outside": 2, "placed_share": 0.0, "sampled_share": 1.0, "levels": [{"level": 0, "themes": 12}],
    "is_stale": False,
}  # fmt: skip


class NoticeRead(BaseModel):
    """What a program should know of an answer."""

    model_config = ConfigDict(from_attributes=True)

    code: str
    detail: str
    facts: dict[str, Any]


class ThemeConceptRead(BaseModel):
    """A concept of a theme."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    label: str
    kind: Literal["name", "number", "word"]
    passages: int = Field(description="Passages of the theme that hold it.")
    lift: float = Field(description="How well it tells the theme from the rest, as of when the map was made.")
    in_question: bool


class ImportanceRead(BaseModel):
    """How much a theme matters, by itself; all from 0 to 1, as of when the map was made."""

    model_config = ConfigDict(from_attributes=True)

    size: float = Field(description="Of its passages, on a logarithmic scale.")
    distinctiveness: float = Field(description="How much of its passages' concepts are its own.")
    density: float = Field(description="Half vocabulary, half entropy.")
    vocabulary: float = Field(description="How much of its vocabulary its passages share.")
    entropy: float = Field(description="How evenly its concepts are spread.")
    importance: float


class ThemeRankRead(BaseModel):
    """Why a theme stands where it does."""

    model_config = ConfigDict(from_attributes=True)

    score: float = Field(description="What themes are ordered by: coverage and importance, weighted.")
    relevance: float | None = Field(
        description="Its legs fused, as a part of the most there can be; null: nothing asked."
    )
    coverage: float | None = Field(description="How much of the question it covers; null: nothing asked.")
    sources: tuple[SourceRead, ...] = Field(description="The legs `coverage`, `vectors` and `tf_idf`, or `importance`.")


class ThemeRead(BaseModel):
    """A community of concepts. What is counted are passages that may be used now."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    level: int = Field(description="The coarsest level that it stands on; 0 is the coarsest of all.")
    parent_id: UUID | None
    label: str
    concepts: tuple[ThemeConceptRead, ...] = Field(description="The most telling ones.")
    passages: int
    documents: int
    placed: int = Field(description="Of the passages, those that came after the map was made.")
    importance: ImportanceRead
    rank: ThemeRankRead
    passage_ids: tuple[int, ...] = Field(description="Of its passages, those in this answer's evidence.")
    link: str = Field(description="The theme with its children and documents.")

    @classmethod
    def of(cls, theme: ThemeEvidence, workspace_id: WorkspaceId) -> Self:
        plain = {name: getattr(theme, name) for name in cls.model_fields if name != "link"}
        return cls.model_validate({**plain, "link": f"/v1/workspaces/{workspace_id}/themes/{theme.id}"})


class ThemeLevelRead(BaseModel):
    """A level of the map."""

    model_config = ConfigDict(from_attributes=True)

    level: int
    themes: int


class ThemeMapRead(BaseModel):
    """The map that the themes are from, beside the corpus as it is now."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    built_at: datetime
    corpus_version: int = Field(description="Of the workspace, when the map was made.")
    passages: int = Field(description="Passages in themes that may be used now.")
    documents: int = Field(description="Documents that may be used now.")
    documents_outside: int = Field(
        description="Those of them with no passage in any theme; `…/themes/outside` has them."
    )
    placed_share: float = Field(description="Part of the passages that came after the map was made.")
    sampled_share: float = Field(description="Part of the corpus that the map was made from.")
    levels: tuple[ThemeLevelRead, ...]
    is_stale: bool = Field(description="Whether the workspace has changed since.")


class ThemesRead(BaseModel):
    """The themes of an answer, best first."""

    level: int | None = Field(description="The level that they stand on; null where there is no map.")
    map: ThemeMapRead | None = Field(description="Null where there is none yet; `notices` then say why.")
    items: list[ThemeRead]

    @classmethod
    def of(cls, found: ThemesFound, workspace_id: WorkspaceId) -> Self:
        return cls(
            level=found.level,
            map=None if found.map is None else ThemeMapRead.model_validate(found.map),
            items=[ThemeRead.of(theme, workspace_id) for theme in found.themes],
        )
