"""What a row of the ingestion bench is and what is learnt from running it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench.sidebyside.corpus import Document
from bench.sidebyside.meters import Cost
from bench.sidebyside.statements import Counted

WARM_UP = Document("warm-up.txt", "The harbour of Lindholm was built in 1902 by Anna Berg. It lies near Ostvik.")


class RowFailed(RuntimeError):
    """A row did not bring every document to its end; its figures would mean nothing."""


class System(Protocol):
    """A running system that takes documents; both systems are driven over their HTTP interfaces."""

    def ingest(self, documents: Sequence[Document]) -> None:
        """Upload and wait until all are ready. Raises RowFailed unless they are."""
        ...


@dataclass
class RowResult:
    """One run of one row."""

    name: str
    documents: int
    text_bytes: int
    seconds: float
    client: Cost
    server: Cost
    statements: Counted
    table_bytes: Mapping[str, int]
    model: Mapping[str, Any]
    # Means a document, by stage, where the system tells them.
    stage_ms: Mapping[str, float] = field(default_factory=dict)
    workers: Cost | None = None  # the part of the client that they are
    facts: Mapping[str, str] = field(default_factory=dict)
    # Seconds and CPU seconds of equal batches, one after the other (GROW=1).
    batches: Sequence["Batch"] = ()

    @property
    def per_minute(self) -> float:
        return self.documents / self.seconds * 60

    @property
    def calls(self) -> Counter[str]:
        return Counter(self.model["calls"])


@dataclass(frozen=True)
class Batch:
    """A number of documents ingested together, after those of the batches before it."""

    first: int
    last: int
    seconds: float
    cpu_seconds: float
