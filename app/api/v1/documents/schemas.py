"""What documents, their progress and their passages look like over HTTP."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.pagination import Page
from app.api.problems import Problem
from app.api.v1.workspaces.schemas import EXAMPLE_ID as WORKSPACE_ID
from app.db.models import IndexState
from app.domain.documents.records import DocumentRecord, Status
from app.domain.documents.replace import Replaced
from app.domain.documents.upload import Uploaded
from app.retrieval.contract import LAZY_MODES, PassageEvidence

DOCUMENT_ID = "6a1de1b6-3bb1-4f0b-8f35-7f5c8f0a9d3e"
VERSION_ID = "b7c2e1aa-6a43-4d0f-a0c9-2d1f0e9b8c71"
_STATE_EXAMPLE: dict[str, Any] = {
    "state": "ready",
    "is_purging": False,
    "stage": "done",
    "attempts": 1,
    "chunks_done": 0,
    "chunks_total": None,
    "error": None,
    "stage_ms": {"parse": 41.2, "embed": 210.4, "index": 12.9},
    "model_calls": 3,
    "tokens_in": 4812,
    "tokens_out": 0,
    "queued_at": "2026-11-30T13:00:00Z",
    "started_at": "2026-11-30T13:00:01Z",
    "finished_at": "2026-11-30T13:00:02Z",
}
EXAMPLE: dict[str, Any] = {
    "id": DOCUMENT_ID,
    "workspace_id": WORKSPACE_ID,
    "title": "Maintenance handbook",
    "filename": "handbooks/press-4.pdf",
    "media_type": "application/pdf",
    "size_bytes": 482133,
    "metadata": {"department": "quality"},
    "status": "ready",
    "queryable_modes": list(LAZY_MODES),
    "outdated": False,
    "version": {
        "id": VERSION_ID,
        "ordinal": 1,
        "language": "en",
        "page_count": 38,
        "char_count": 91244,
        "passage_count": 240,
        "chunk_count": 24,
        "created_at": "2026-11-30T13:00:00Z",
    },
    "engines": {"lazy": _STATE_EXAMPLE},
    "failed_chunks": [],
    "created_at": "2026-11-30T13:00:00Z",
    "updated_at": "2026-11-30T13:00:00Z",
    "links": {
        "self": f"/v1/workspaces/{WORKSPACE_ID}/documents/{DOCUMENT_ID}",
        "content": f"/v1/workspaces/{WORKSPACE_ID}/documents/{DOCUMENT_ID}/content",
    },
}
UPLOADED_EXAMPLE: dict[str, Any] = EXAMPLE | {"status": "processing", "duplicate": False}
BULK_EXAMPLE: dict[str, Any] = {
    "accepted": 1,
    "duplicates": 0,
    "refused": 1,
    "results": [
        {
            "index": 0,
            "ref": None,
            "filename": "a.txt",
            "status": "accepted",
            "document_id": DOCUMENT_ID,
            "link": f"/v1/workspaces/{WORKSPACE_ID}/documents/{DOCUMENT_ID}",
            "problem": None,
        },
        {
            "index": 1,
            "ref": None,
            "filename": "b.exe",
            "status": "refused",
            "document_id": None,
            "link": None,
            "problem": {
                "type": "urn:trellis:problem:unsupported_media_type",
                "title": "Unsupported media type",
                "status": 415,
                "detail": "b.exe: this format is not accepted.",
                "code": "unsupported_media_type",
                "request_id": "0f8fad5bd9cb469f",
            },
        },
    ],
}
REPLACED_EXAMPLE: dict[str, Any] = EXAMPLE | {"status": "processing", "unchanged": False}


class ErrorRead(BaseModel):
    """Why something failed: `code` for programs, `detail` for people."""

    code: str
    detail: str


class EngineRead(BaseModel):
    """How far one engine is with the newest version."""

    state: Literal["queued", "running", "ready", "partial", "failed", "cancelled"]
    is_purging: bool = Field(description="What an interrupted write left is being removed; a retry waits for that.")
    stage: str = Field(description="What is being done now.")
    attempts: int
    chunks_done: int
    chunks_total: int | None
    error: ErrorRead | None
    stage_ms: dict[str, float] = Field(description="Milliseconds by stage.")
    model_calls: int
    tokens_in: int
    tokens_out: int
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, row: IndexState) -> Self:
        error = ErrorRead(code=row.error_code, detail=row.error_detail or "") if row.error_code else None
        plain = {name: getattr(row, name) for name in cls.model_fields if hasattr(row, name)}
        return cls.model_validate({**plain, "error": error, "is_purging": row.cleanliness == "purging"})


class VersionRead(BaseModel):
    """One ingested content of the document; counts are null until it has been parsed."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    ordinal: int
    language: str | None
    page_count: int | None
    char_count: int | None
    passage_count: int | None
    chunk_count: int | None
    created_at: datetime


class FailedChunk(BaseModel):
    """A part of the document that the graph does not know, and why."""

    model_config = ConfigDict(from_attributes=True)

    ordinal: int
    page_start: int | None
    page_end: int | None
    error_code: str
    error_detail: str


class Links(BaseModel):
    """Where to poll, and where the original is."""

    self: str
    content: str


class DocumentRead(BaseModel):
    """A document and how far its newest version is. `ready`, `partial`, `failed` and `cancelled` are final."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    id: UUID
    workspace_id: UUID
    title: str
    filename: str
    media_type: str
    size_bytes: int
    metadata: dict[str, Any]
    status: Status
    queryable_modes: list[str] = Field(description="Modes whose queries use this document now.")
    outdated: bool = Field(
        description="Indexed under other settings than the workspace has now, or under another title."
    )
    version: VersionRead
    engines: dict[Literal["lazy", "graph"], EngineRead]
    failed_chunks: list[FailedChunk] = Field(description="The first of them; only when one document is read.")
    created_at: datetime
    updated_at: datetime
    links: Links

    @classmethod
    def of(cls, record: DocumentRecord) -> Self:
        document = record.document
        link = document_link(document.workspace_id, document.id)
        return cls(
            id=document.id,
            workspace_id=document.workspace_id,
            title=document.title,
            filename=document.filename,
            media_type=record.version.media_type,
            size_bytes=record.blob.size_bytes,
            metadata=document.metadata_,
            status=record.status,
            queryable_modes=record.queryable_modes,
            outdated=record.is_outdated,
            version=VersionRead.model_validate(record.version),
            engines={state.engine: EngineRead.of(state) for state in record.states},  # type: ignore[misc] # checked there
            failed_chunks=[FailedChunk.model_validate(failure) for failure in record.chunk_failures],
            created_at=document.created_at,
            updated_at=document.updated_at,
            links=Links(self=link, content=f"{link}/content"),
        )


class UploadedDocument(DocumentRead):
    """The document that holds an upload."""

    model_config = ConfigDict(json_schema_extra={"examples": [UPLOADED_EXAMPLE]})

    duplicate: bool = Field(
        default=False, description="The workspace had a document with the same bytes: this one. Nothing was stored."
    )

    @classmethod
    def of_upload(cls, uploaded: Uploaded) -> Self:
        return cls.of(uploaded.record).model_copy(update={"duplicate": uploaded.is_duplicate})


class DocumentReplaced(DocumentRead):
    """A document whose content was to be replaced."""

    model_config = ConfigDict(json_schema_extra={"examples": [REPLACED_EXAMPLE]})

    unchanged: bool = Field(default=False, description="It has these bytes already: there is no new version.")

    @classmethod
    def of_replacement(cls, replaced: Replaced) -> Self:
        return cls.of(replaced.record).model_copy(update={"unchanged": replaced.is_unchanged})


class DocumentsAccepted(BaseModel):
    """The documents of an upload, in the order of the request."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"documents": [UPLOADED_EXAMPLE]}]})

    documents: list[UploadedDocument]


class BulkItem(BaseModel):
    """What became of one file or line."""

    index: int = Field(description="Its place in the request, from 0; blank lines do not count.")
    ref: str | None = Field(description="As the line of a manifest gave it.")
    filename: str | None
    status: Literal["accepted", "duplicate", "refused"]
    document_id: UUID | None
    link: str | None = Field(description="Where to poll.")
    problem: Problem | None = Field(description="Why it was refused.")


class BulkResult(BaseModel):
    """One result a file or line, in the order of the request."""

    model_config = ConfigDict(json_schema_extra={"examples": [BULK_EXAMPLE]})

    accepted: int
    duplicates: int
    refused: int
    results: list[BulkItem]


class DocumentPage(Page[DocumentRead]):
    """Documents, newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [EXAMPLE], "next_cursor": None}]})


_PASSAGE_EXAMPLE: dict[str, Any] = {
    "id": 4711,
    "document_id": DOCUMENT_ID,
    "version_id": VERSION_ID,
    "title": "Maintenance handbook",
    "filename": "handbooks/press-4.pdf",
    "ordinal": 12,
    "text": "The seals of press 4 are replaced every 2,000 hours.",
    "page_start": 9,
    "page_end": 9,
    "char_start": 20311,
    "char_end": 20363,
    "heading_path": ["Maintenance", "Seals"],
}


class PassageRead(BaseModel):
    """A passage: whole sentences of a document, at `char_start` to `char_end` of its text."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PASSAGE_EXAMPLE]})

    id: int
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
    heading_path: Annotated[list[str], Field(description="The headings above it, outermost first.")]

    @classmethod
    def of(cls, passage: PassageEvidence) -> Self:
        plain = {name: getattr(passage, name) for name in cls.model_fields if hasattr(passage, name)}
        return cls.model_validate({**plain, "id": passage.passage_id, "heading_path": list(passage.heading_path)})


class PassageInContext(BaseModel):
    """A passage with its neighbours in reading order."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"passage": _PASSAGE_EXAMPLE, "before": [], "after": []}]}
    )

    passage: PassageRead
    before: list[PassageRead]
    after: list[PassageRead]


def document_link(workspace_id: UUID, document_id: UUID) -> str:
    return f"/v1/workspaces/{workspace_id}/documents/{document_id}"
