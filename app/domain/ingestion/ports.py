"""What ingestion works with: wired in bootstrap, so that nothing here knows what stands behind a protocol."""

from dataclasses import dataclass

from app.blobs.store import BlobStore
from app.db.session import Database
from app.domain.ingestion.leases import WorkspaceLeases
from app.domain.workspaces.opening import WorkspaceOpener
from app.parsing.service import FileParser
from app.retrieval.contract import GraphIndex, LazyIndex
from app.settings import Settings


@dataclass(frozen=True)
class Ports:
    """The collaborators of every job."""

    settings: Settings
    database: Database
    blobs: BlobStore
    parser: FileParser
    leases: WorkspaceLeases
    workspaces: WorkspaceOpener
    lazy_index: LazyIndex
    graph_index: GraphIndex
