"""What lists of themes and single ones look like over HTTP."""

from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.v1.documents.schemas import DOCUMENT_ID
from app.api.v1.queries.evidence import Citation
from app.api.v1.themes.schemas import THEME_EXAMPLE, THEME_MAP_EXAMPLE, NoticeRead, ThemeMapRead, ThemeRead
from app.api.v1.workspaces.schemas import EXAMPLE_ID as WORKSPACE_ID
from app.db.base import WorkspaceId
from app.domain.themes.reports import WrittenReport
from app.retrieval.themes.browsing import OutsideListing, ThemeDetail, ThemeListing

_PAGE: dict[str, Any] = {
    "items": [THEME_EXAMPLE],
    "next_cursor": None,
    "level": 0,
    "map": THEME_MAP_EXAMPLE,
    "notices": [],
}


_REPORT: dict[str, Any] = {
    "title": "Seals of press 4",
    "summary": "The seals of press 4 are made by Kestrel Polymers and replaced every 2,000 hours.",
    "model": "my-chat",
    "is_extractive": False,
    "created_at": "2026-12-01T09:10:00Z",
    "is_cached": False,
}


class ThemePage(BaseModel):
    """Part of the themes of one level, the most important first. `next_cursor` is null on the last page."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PAGE]})

    items: list[ThemeRead]
    next_cursor: str | None = Field(description="Send it as `cursor`, with the same `level`, to get the next page.")
    level: int | None
    map: ThemeMapRead | None = Field(description="Null where there is none yet; `notices` then say why.")
    notices: list[NoticeRead]

    @classmethod
    def of(cls, found: ThemeListing, workspace_id: WorkspaceId, next_cursor: str | None) -> Self:
        return cls(
            items=[ThemeRead.of(theme, workspace_id) for theme in found.themes],
            next_cursor=next_cursor,
            level=found.level,
            map=None if found.map is None else ThemeMapRead.model_validate(found.map),
            notices=[NoticeRead.model_validate(notice) for notice in found.notices],
        )


class OutsideDocumentRead(BaseModel):
    """A document that no theme speaks of."""

    model_config = ConfigDict(from_attributes=True)

    document_id: UUID
    title: str
    filename: str


class OutsidePage(BaseModel):
    """Part of the documents that are in no theme. `next_cursor` is null on the last page."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [{"document_id": DOCUMENT_ID, "title": "Canteen menu", "filename": "menu.txt"}],
                    "next_cursor": None,
                    "notices": [],
                }
            ]
        }
    )

    items: list[OutsideDocumentRead]
    next_cursor: str | None = Field(description="Send it as `cursor` to get the next page.")
    notices: list[NoticeRead]

    @classmethod
    def of(cls, found: OutsideListing, next_cursor: str | None) -> Self:
        return cls(
            items=[OutsideDocumentRead.model_validate(document) for document in found.documents],
            next_cursor=next_cursor,
            notices=[NoticeRead.model_validate(notice) for notice in found.notices],
        )


class ThemesRefreshing(BaseModel):
    """A map that will be made. When it is there, the `map` of the list is another one and not stale."""

    class Links(BaseModel):
        themes: str

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"workspace_id": WORKSPACE_ID, "links": {"themes": f"/v1/workspaces/{WORKSPACE_ID}/themes"}}]
        }
    )

    workspace_id: UUID
    links: Links


class ThemeDocumentRead(BaseModel):
    """A document that speaks of the theme."""

    model_config = ConfigDict(from_attributes=True)

    document_id: UUID
    title: str
    filename: str
    passages: int = Field(description="Of the theme, in this document.")


class ThemeReportRead(BaseModel):
    """What the workspace's chat model wrote of the theme, from what its passages say now."""

    model_config = ConfigDict(from_attributes=True, json_schema_extra={"examples": [_REPORT]})

    title: str
    summary: str
    model: str
    is_extractive: bool = Field(description="Sentences of the passages, quoted by rules: the model is the offline one.")
    created_at: datetime
    is_cached: bool = Field(description="It was there already, so no model was asked.")


class ThemePassageRead(Citation):
    """A passage that stands for the theme; the first ones are of different documents."""

    text: str


class ThemeDetailRead(BaseModel):
    """A theme with what it is made of."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "theme": THEME_EXAMPLE,
                    "children": [],
                    "passages": [],
                    "documents": [
                        {
                            "document_id": DOCUMENT_ID,
                            "title": "Maintenance handbook",
                            "filename": "handbooks/press-4.pdf",
                            "passages": 9,
                        }
                    ],
                    "map": THEME_MAP_EXAMPLE,
                    "report": None,
                }
            ]
        }
    )

    theme: ThemeRead
    children: list[ThemeRead] = Field(description="The themes of the next level in it, the most important first.")
    passages: list[ThemePassageRead]
    documents: list[ThemeDocumentRead] = Field(description="At most 20, those with most passages of the theme first.")
    map: ThemeMapRead
    report: ThemeReportRead | None = Field(description="Null where none is there of what the theme's passages say now.")

    @classmethod
    def of(cls, found: ThemeDetail, report: WrittenReport | None, workspace_id: WorkspaceId) -> Self:
        passages = []
        for number, passage in enumerate(found.passages, start=1):
            cited = Citation.of(number, passage, workspace_id)
            passages.append(ThemePassageRead(**cited.model_dump(), text=passage.text))
        return cls(
            theme=ThemeRead.of(found.theme, workspace_id),
            children=[ThemeRead.of(child, workspace_id) for child in found.children],
            passages=passages,
            documents=[ThemeDocumentRead.model_validate(document) for document in found.documents],
            map=ThemeMapRead.model_validate(found.map),
            report=None if report is None else ThemeReportRead.model_validate(report),
        )
