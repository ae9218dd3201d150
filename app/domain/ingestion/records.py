"""What ingestion reads of a version before it works on it, and what it keeps of one afterwards."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.retrieval.contract import ChunkOutcome, WorkspaceRef


@dataclass(frozen=True)
class VersionFacts:
    """A version with what its document and workspace say about it. `settings` are the workspace's."""

    ref: WorkspaceRef
    document_id: UUID
    version_id: UUID
    title: str
    filename: str
    media_type: str
    blob_key: str
    profile_hash: str
    settings: dict[str, Any]
    # Whether an earlier attempt has stored passages.
    has_text: bool
    # Whether the graph engine is meant to index it.
    has_graph: bool
    # Whether the document has versions beside this one.
    has_others: bool
    # Whether the tenant's plan bounds what is ingested at once.
    is_bounded: bool

    def seconds(self, name: str, default: float) -> float:
        """A time limit that the workspace may set for itself."""
        value = self.settings.get(name)
        return default if value is None else float(value)

    @property
    def keeps_partial_out(self) -> bool:
        """Whether a graph that lacks chunks is not to be indexed."""
        return self.settings.get("partial_graphs") == "keep_out"


@dataclass(frozen=True)
class TextFacts:
    """What is kept of a version's text beside its passages."""

    language: str
    page_count: int | None
    char_count: int
    passage_count: int
    chunk_count: int
    profile_hash: str


@dataclass(frozen=True)
class Extraction:
    """How far the extraction of a version's chunks is: ordinals that are open, and outcomes that are failures, in order.

    `refused` are the open ones that were asked for in vain, `unwritten` outcomes that go with the attempt's next transaction.
    """

    total: int
    pending: frozenset[int]
    failed: tuple[ChunkOutcome, ...]
    refused: tuple[ChunkOutcome, ...] = ()
    unwritten: tuple[ChunkOutcome, ...] = ()

    @property
    def extracted(self) -> int:
        return self.total - len(self.pending) - len(self.failed)

    @property
    def counts(self) -> tuple[int, int]:
        """Chunks that are extracted, and all."""
        return self.extracted, self.total
