"""Names and payloads of background jobs. Domain code names a job; the Celery publisher is wired in bootstrap.

The row that a job works on is its outbox: it is committed first, the job is published after, and the sweeper sends
again whatever the broker lost. A payload therefore carries ids only.
"""

from dataclasses import asdict, dataclass
from typing import ClassVar, Self
from uuid import UUID

from app.db.session import SystemSession


@dataclass(frozen=True)
class Job:
    """One unit of background work; subclasses name it and say which queue carries it."""

    name: ClassVar[str]
    queue: ClassVar[str]
    tenant_id: UUID

    def payload(self) -> dict[str, str]:
        return {key: str(value) for key, value in asdict(self).items()}

    @classmethod
    def parse(cls, payload: dict[str, str]) -> Self:
        """The job that `payload` was made from; ValueError or TypeError if it was not made from one of this kind."""
        return cls(**{key: UUID(value) for key, value in payload.items()})


@dataclass(frozen=True)
class ProcessVersion(Job):
    """Parse a version, write its passages and vectors, index the lazy engine; then queue the graph if it is on."""

    name = "ingestion.process_version"
    queue = "ingest"
    workspace_id: UUID
    version_id: UUID


@dataclass(frozen=True)
class IndexGraph(Job):
    """Extract a version's chunks and merge them into the workspace's graph."""

    name = "ingestion.index_graph"
    queue = "graph"
    workspace_id: UUID
    version_id: UUID


@dataclass(frozen=True)
class ChangeEntities(Job):
    """Make a queued change of a workspace's entities: one that touches too much for a request to wait for."""

    name = "entities.change"
    queue = "graph"
    workspace_id: UUID
    change_id: UUID


@dataclass(frozen=True)
class MergeDuplicates(Job):
    """Merge the surest duplicates of a workspace that wants it; told after each document that came into the graph."""

    name = "entities.merge_duplicates"
    queue = "graph"
    workspace_id: UUID


@dataclass(frozen=True)
class RefreshThemes(Job):
    """Build a workspace's map of themes again, if somebody asked for it or enough has changed."""

    name = "themes.refresh"
    queue = "graph"
    workspace_id: UUID


@dataclass(frozen=True)
class PurgeDocument(Job):
    """Remove every trace of a document that is being deleted."""

    name = "ingestion.purge_document"
    queue = "purge"
    workspace_id: UUID
    document_id: UUID


@dataclass(frozen=True)
class PurgeGraphVersion(Job):
    """Remove what a timed-out or superseded graph index left behind."""

    name = "ingestion.purge_graph_version"
    queue = "purge"
    workspace_id: UUID
    version_id: UUID


@dataclass(frozen=True)
class PurgeUnownedVersion(Job):
    """Remove what the graph engine holds of a version that is no longer there."""

    name = "ingestion.purge_unowned_version"
    queue = "purge"
    workspace_id: UUID
    version_id: UUID


@dataclass(frozen=True)
class PurgeWorkspace(Job):
    """Remove a workspace that is being deleted, engine rows and originals included."""

    name = "ingestion.purge_workspace"
    queue = "purge"
    workspace_id: UUID


@dataclass(frozen=True)
class PurgeTenant(Job):
    """Remove a tenant that is being deleted, and count that nothing is left of it."""

    name = "tenants.purge_tenant"
    queue = "purge"


def enqueue(session: SystemSession, job: Job) -> None:
    """Publish `job` after the session's unit of work has committed; dropped if it does not."""
    session.outbox.append(job)


# In the order in which a worker that is free looks into them: what takes long comes last.
QUEUES = ("purge", "ingest", "graph")

ALL_JOBS: tuple[type[Job], ...] = (
    ProcessVersion,
    IndexGraph,
    ChangeEntities,
    MergeDuplicates,
    RefreshThemes,
    PurgeDocument,
    PurgeGraphVersion,
    PurgeUnownedVersion,
    PurgeWorkspace,
    PurgeTenant,
)
