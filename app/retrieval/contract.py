"""What domain code and the engines say to each other: protocols, the value types they exchange, modes and errors.

Engines sit behind small protocols: `GraphIndex` and `LazyIndex` (write, remove), `Search` (query) and, in a module of its
own, `Entities` (browse, merge). Nothing here does I/O.
"""

import json
from asyncio import Event
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any, Literal, Protocol
from uuid import UUID

from numpy.typing import NDArray

from app.db.base import TenantId, WorkspaceId
from app.db.session import TenantSession
from app.errors import AppError
from app.providers.contract import ChatModel, EmbeddingModel
from app.retrieval.budgets import NO_BUDGETS, LazyBudgets
from app.retrieval.errors import (
    EngineOff,
    GraphStoreChanged,
    GraphStoreUnavailable,
    GraphWriteFailed,
    LeaseLost,
    UnknownMode,
    WorkspaceBusy,
)
from app.retrieval.filters import NO_FILTER, EvidenceFilter
from app.retrieval.theme_contract import NO_OPTIONS, NO_THEMES, Source, ThemeOptions, ThemesFound

# Handed on: whoever uses a protocol meets its errors.
__all__ = [
    "EngineOff",
    "GraphStoreChanged",
    "GraphStoreUnavailable",
    "GraphWriteFailed",
    "LeaseLost",
    "Source",
    "UnknownMode",
    "WorkspaceBusy",
]

Engine = Literal["lazy", "graph"]
Vector = NDArray[Any]
GRAPH_MODES = ("naive", "local", "global", "hybrid", "mix")
LAZY_MODES = ("lazy", "lazy-fast", "lazy-balanced", "lazy-wide")
BASELINE_MODES = ("baseline",)
THEME_MODES = ("themes",)
MODES: Mapping[str, Engine] = {
    **dict.fromkeys(GRAPH_MODES, "graph"),
    **dict.fromkeys((*LAZY_MODES, *BASELINE_MODES, *THEME_MODES), "lazy"),
}


# Where a workspace keeps its graph: in two plain tables, or in Apache AGE.
GraphStoreName = Literal["table", "age"]


@dataclass(frozen=True)
class WorkspaceRef:
    """Which corpus, of whom. `number` is its short key in posting tables; `graph_store` is no part of who it is."""

    tenant_id: TenantId
    workspace_id: WorkspaceId
    number: int
    graph_store: GraphStoreName = field(default="table", compare=False)

    @property
    def engine_name(self) -> str:
        """The name LightRAG knows the workspace by: ours, never a user's text."""
        return f"w_{self.workspace_id.hex}"


@dataclass(frozen=True)
class IndexProfile:
    """Everything that decides how a version is cut and extracted; a version keeps the hash it was indexed under."""

    chunk_strategy: Literal["recursive", "fixed", "sentence", "semantic"] = "recursive"
    chunk_tokens: int = 1200
    entity_types: tuple[tuple[str, str], ...] = ()
    extraction_language: str = "the language of the text"
    gleaning: int = 0
    extraction_examples: tuple[str, ...] = ()
    max_source_ids: int = 200
    summary_after_fragments: int = 8
    summary_max_tokens: int = 1200
    embedding: str = ""
    chat: str = ""

    @property
    def hash(self) -> str:
        """A short digest, equal for equal profiles in every process."""
        return blake2b(json.dumps(asdict(self), sort_keys=True).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class EngineWorkspace:
    """A workspace as an engine needs it: where it is, how it indexes, and the models it uses."""

    ref: WorkspaceRef
    profile: IndexProfile
    embedding: EmbeddingModel
    vector_suffix: str
    chat: ChatModel | None
    corpus_version: int | None = None  # when it was opened; None forbids to cache


@dataclass(frozen=True)
class Lease:
    """The right to write a workspace's graph. `epoch` was read when it was taken and fences a holder that overslept."""

    ref: WorkspaceRef
    owner: str
    epoch: int


@dataclass(frozen=True)
class Statement:
    """One statement on our own tables that goes in together with an engine's write; parameters are $1, $2 …

    `otherwise` is raised, and nothing at all is written, if the statement touches no row. Arguments that only the end of the
    write can tell, such as what it used, are asked for when the statement runs.
    """

    sql: str
    arguments: tuple[Any, ...] | Callable[[], tuple[Any, ...]] = ()
    otherwise: AppError | None = None

    @property
    def values(self) -> tuple[Any, ...]:
        return self.arguments() if callable(self.arguments) else self.arguments


# --- Indexing -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChunkText:
    """A chunk as the graph engine gets it."""

    ordinal: int
    text: str
    tokens: int


@dataclass(frozen=True)
class VersionChunks:
    """One version, cut for the graph engine. Chunk ids in the engine are `{version_id}-chunk-{ordinal:03d}`."""

    version_id: UUID
    document_id: UUID
    chunks: tuple[ChunkText, ...]


@dataclass(frozen=True)
class ChunkOutcome:
    """How one chunk's extraction ended; `error_code` is None when the answer is in the cache, `may_pass`: ask again later."""

    ordinal: int
    error_code: str | None = None
    error_detail: str | None = None
    may_pass: bool = False


OnChunk = Callable[[ChunkOutcome], Awaitable[None]]


@dataclass(frozen=True)
class PassageRow:
    """A stored passage as the lazy engine indexes it."""

    id: int
    ordinal: int
    text: str
    heading_path: tuple[str, ...]


# What an engine read in the model's answers, by a chunk's ordinal; nobody else looks into it.
Extracted = MutableMapping[int, Any]


class GraphIndex(Protocol):
    """Writes a workspace's knowledge graph. All but `extract` need the workspace's lease."""

    def is_atomic(self, ref: WorkspaceRef) -> bool:
        """Whether a write of this workspace's graph that breaks off leaves nothing behind."""
        ...

    async def extract(
        self,
        workspace: EngineWorkspace,
        version: VersionChunks,
        on_chunk: OnChunk,
        *,
        until: Event | None = None,
        into: Extracted | None = None,
    ) -> None:
        """Ask the model about every chunk whose answer is not in the cache yet; report each chunk, found or asked.

        Once `until` is set no further chunk is asked for; those under way are waited for, and the others not reported.
        `into` gets what was read in the answers, so that `insert` need not read them again.
        Never raises for a chunk that failed: that is an outcome. Raises `ModelUnavailable` when the model answers for no
        chunk, `ModelRejected` when its provider refuses whoever asks, and `Unavailable` when the cache cannot be reached.
        """
        ...

    async def insert(
        self,
        workspace: EngineWorkspace,
        version: VersionChunks,
        lease: Lease,
        *,
        extracted: Extracted | None = None,
        replaces: Sequence[UUID] = (),
        companions: Sequence[Statement] = (),
    ) -> None:
        """Merge the extracted chunks into the graph and remove the versions it `replaces`, in one write with `companions`.

        Of chunks that are not in `extracted` the cached answers are read. What the version left from an earlier attempt goes with the same write. Raises `GraphWriteFailed` unless the
        engine says processed.
        """
        ...

    async def remove(
        self, workspace: EngineWorkspace, version_id: UUID, lease: Lease, *, keep_answers: bool = False
    ) -> None:
        """Remove every trace of the version; no-op if there is none; raises `GraphWriteFailed` if a row is left.

        `keep_answers` spares the model's cached answers, so that indexing the version again pays for nothing twice.
        """
        ...

    async def clear(self, workspace: EngineWorkspace, lease: Lease) -> None:
        """Remove every row of the workspace from the engine's tables."""
        ...

    async def discard(self, workspace_id: UUID) -> None:
        """Remove every row of a workspace that is no longer there, and so has no lease."""
        ...


class GraphStores(Protocol):
    """Where this installation can keep graphs."""

    async def require_available(self, name: GraphStoreName) -> None:
        """Raises `GraphStoreUnavailable`."""
        ...


class GraphMoves(Protocol):
    """Copies a workspace's graph to another store; nothing of it changes where the workspace keeps it."""

    async def copy(self, workspace: EngineWorkspace, to: GraphStoreName) -> int:
        """Make the store `to` hold what the graph holds now; how many rows that changed."""
        ...

    async def verify(self, workspace: EngineWorkspace, to: GraphStoreName) -> int:
        """Compare every row of both; how many there are. Raises Conflict `moved_graph_differs`."""
        ...

    async def give_up(self, workspace: EngineWorkspace, store: GraphStoreName) -> None:
        """Remove what `store` holds of a workspace that keeps its graph elsewhere."""
        ...


class LazyIndex(Protocol):
    """Writes the LLM-free index in the caller's transaction, so that a version is there whole or not at all."""

    async def add(
        self, session: TenantSession, ref: WorkspaceRef, title: str, passages: Sequence[PassageRow], *,
        is_file_name: bool = False,
    ) -> None:  # fmt: skip
        """Index passages that the same transaction has stored; a title that is a file's name names no concept."""
        ...

    async def remove(self, session: TenantSession, ref: WorkspaceRef, version_id: UUID) -> None:
        """Remove what `add` wrote for the version; its passages go after."""
        ...


# --- Searching ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Keywords:
    """`high`: themes and relations, `low`: names and things (LightRAG's hl_keywords and ll_keywords)."""

    high: tuple[str, ...] = ()
    low: tuple[str, ...] = ()


@dataclass(frozen=True)
class SearchRequest:
    """One question. Token budgets of the graph count the text of the evidence; the context has budgets of its own.

    `top_k` None is what the mode returns by itself: `DEFAULT_TOP_K`, or the budget of a lazy mode.
    """

    query: str
    mode: str
    top_k: int | None = None
    graph_top_k: int = 40
    max_entity_tokens: int = 6000
    max_relation_tokens: int = 8000
    keywords: Keywords | Literal["llm"] | None = None
    include_partial: bool = False
    budgets: LazyBudgets = NO_BUDGETS
    filter: EvidenceFilter = NO_FILTER
    added_terms: tuple[str, ...] = ()  # words to look for beside those of the question, which count less
    themes: ThemeOptions = NO_OPTIONS


@dataclass(frozen=True)
class PassageEvidence:
    """A passage with all that a citation needs."""

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
    is_partial: bool = False
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class EntityEvidence:
    """An entity, and the documents whose chunks support it; `is_partial`: one of those is indexed in part only."""

    name: str
    type: str
    description: str
    document_ids: tuple[UUID, ...]
    sources: tuple[Source, ...] = ()
    is_partial: bool = False
    score: float = 0.0

    @property
    def id(self) -> str:
        """The same for the same name, in every workspace and for ever."""
        return f"ent_{_digest(self.name)}"


@dataclass(frozen=True)
class RelationEvidence:
    """A relation between two entities, and the documents whose chunks support it."""

    source: str
    target: str
    description: str
    keywords: str
    weight: float
    document_ids: tuple[UUID, ...]
    sources: tuple[Source, ...] = ()
    is_partial: bool = False
    score: float = 0.0

    @property
    def id(self) -> str:
        """The same for the same two names, whichever is called the source."""
        return f"rel_{_digest(*sorted((self.source, self.target)))}"


def _digest(*names: str) -> str:
    return blake2b("\0".join(names).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class SearchResult:
    """Ranked evidence, best first. `withheld` counts, by reason, the pieces that were found and may not be used, under a
    filter the documents that meet it and may not; `details` is the engine's own explanation, JSON-able."""

    passages: tuple[PassageEvidence, ...]
    entities: tuple[EntityEvidence, ...] = ()
    relations: tuple[RelationEvidence, ...] = ()
    stage_ms: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    withheld: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    themes: ThemesFound = NO_THEMES


class Search(Protocol):
    """Answers the modes of one engine with evidence; only trusted versions are used."""

    async def search(self, workspace: EngineWorkspace, request: SearchRequest) -> SearchResult: ...
