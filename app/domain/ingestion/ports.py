"""What ingestion works with: wired in bootstrap, so that nothing here knows what stands behind a protocol."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from app.blobs.store import BlobStore
from app.db.session import Database
from app.domain.ingestion.leases import WorkspaceLeases
from app.retrieval.contract import EngineWorkspace, GraphIndex, LazyIndex
from app.settings import Settings

# (tenant, workspace) → the workspace with its index profile and its models.
OpenWorkspace = Callable[[UUID, UUID], Awaitable[EngineWorkspace]]


@dataclass(frozen=True)
class Ports:
    """The collaborators of every job."""

    settings: Settings
    database: Database
    blobs: BlobStore
    leases: WorkspaceLeases
    open_workspace: OpenWorkspace
    lazy_index: LazyIndex
    graph_index: GraphIndex
