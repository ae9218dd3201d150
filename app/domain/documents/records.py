"""A document with everything that polling shows."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from app.db.models import Blob, Document, IndexState, Version
from app.retrieval.contract import MODES

Status = Literal["processing", "ready", "partial", "failed", "cancelled", "deleting"]
FINAL_STATUSES: tuple[Status, ...] = ("ready", "partial", "failed", "cancelled")


@dataclass(frozen=True)
class ChunkFailure:
    """A chunk that the graph engine could not read, and the pages it is on."""

    ordinal: int
    error_code: str
    error_detail: str
    page_start: int | None
    page_end: int | None


@dataclass(frozen=True)
class DocumentRecord:
    """`states` are those of the newest version; `answering` are the engines that answer from some trusted version."""

    document: Document
    version: Version
    blob: Blob
    status: Status
    is_outdated: bool
    states: tuple[IndexState, ...]
    answering: frozenset[str]
    chunk_failures: tuple[ChunkFailure, ...] = field(default=())

    @property
    def queryable_modes(self) -> list[str]:
        """The modes whose queries use this document now, without asking for partial ones."""
        return [mode for mode, engine in MODES.items() if engine in self.answering]


@dataclass(frozen=True)
class DocumentFilter:
    """What a list is narrowed to; None or empty does not narrow. Text filters match any part, in any case."""

    statuses: tuple[Status, ...] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    title: str | None = None
    filename: str | None = None
    metadata: dict[str, Any] | None = None
