"""What ingestion works with: wired in bootstrap, so that nothing here knows what stands behind a protocol."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from app.aside import RunAside
from app.blobs.store import BlobStore
from app.db.session import Database
from app.domain.ingestion.leases import WorkspaceLeases
from app.domain.workspaces.opening import WorkspaceOpener
from app.parsing.service import FileParser
from app.retrieval.contract import GraphIndex, LazyIndex
from app.settings import Settings


@dataclass(frozen=True)
class Ports:
    """The collaborators of every job. `waiting` counts the messages in a queue; 0 where it cannot be asked."""

    settings: Settings
    database: Database
    blobs: BlobStore
    parser: FileParser
    run_aside: RunAside
    leases: WorkspaceLeases
    workspaces: WorkspaceOpener
    lazy_index: LazyIndex
    graph_index: GraphIndex
    waiting: Callable[[str], Awaitable[int]]
