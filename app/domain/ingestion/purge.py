"""Removes what must not stay: documents and workspaces that are deleted, superseded versions, and what a failed merge left.

The graph engine is emptied first, under the workspace's lease; then our rows go and the originals with them. Every purge may be
repeated from the start.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from uuid import UUID

from app.db.session import TenantSession
from app.domain.ingestion.ports import Ports
from app.domain.ingestion.purge_repository import PurgeRepository
from app.domain.ingestion.records import VersionFacts
from app.domain.ingestion.repository import IngestionRepository
from app.domain.ingestion.states import IndexStates
from app.domain.usage.repository import UsageLedger
from app.errors import Unavailable
from app.jobs import PurgeDocument, PurgeGraphVersion, PurgeUnownedVersion, PurgeWorkspace, enqueue
from app.providers.usage import meter_usage
from app.retrieval.contract import Engine, EngineWorkspace, Lease, WorkspaceRef

ENGINES: tuple[Engine, ...] = ("lazy", "graph")
# A purge holds a worker's slot while it waits, and looks again later; a longer wait would keep documents from being read.
LEASE_WAIT_SECONDS = 1.0
QUERIES_AT_ONCE = 5000


class RemovalIncomplete(Unavailable):
    """After a removal something still names the document. It is rolled back and tried again."""

    code = "removal_incomplete"
    title = "The removal was not complete"


async def retire_superseded(session: TenantSession, facts: VersionFacts) -> None:
    """Queue the removal of the document's versions that no engine answers from any more."""
    for version_id in await PurgeRepository(session).list_superseded(facts.document_id):
        enqueue(session, PurgeGraphVersion(facts.ref.tenant_id, facts.ref.workspace_id, version_id))


async def stop_document(session: TenantSession, workspace_id: UUID, document_id: UUID) -> None:
    """Nothing answers from the document any more, and whoever works on it loses the claim. Safe to repeat."""
    states = IndexStates(session)
    for version_id in await PurgeRepository(session).list_versions(document_id):
        for engine in ENGINES:
            await states.cancel(version_id, engine)
    repository = IngestionRepository(session)
    await repository.drop_live_document(document_id)
    await repository.bump_corpus(workspace_id)


@dataclass(frozen=True)
class _WritableGraph:
    workspace: EngineWorkspace
    lease: Lease


class Purger:
    """Does the purge jobs. Raises WorkspaceBusy when another write holds the workspace for long: try again later."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def document(self, job: PurgeDocument) -> None:
        """Remove a document that is being deleted."""
        async with self._ports.database.tenant(job.tenant_id) as session:
            ref = await PurgeRepository(session).find_deleting(job.document_id)
            if ref is None:
                return
            await stop_document(session, ref.workspace_id, job.document_id)
            versions = await self._graph_versions(session, job.document_id)
        async with self._graph_of(ref, needed=bool(versions)) as graph:
            if graph is not None:
                for version_id in versions:
                    await self._ports.graph_index.remove(graph.workspace, version_id, graph.lease)
            await self._remove_rows(ref, job.document_id)

    async def graph_version(self, job: PurgeGraphVersion) -> None:
        """Remove what a failed merge left of a version, or all of a version that was superseded."""
        async with self._ports.database.tenant(job.tenant_id) as session:
            facts = await IngestionRepository(session).find_version(job.version_id)
            if facts is None:
                return
            repository = PurgeRepository(session)
            is_superseded = job.version_id in await repository.list_superseded(facts.document_id)
            has_graph = await IngestionRepository(session).may_be_in_graph(job.version_id)
            if not is_superseded and not await repository.is_purging(job.version_id):
                return
        async with self._graph_of(facts.ref, needed=has_graph) as graph:
            if graph is not None:
                await self._ports.graph_index.remove(
                    graph.workspace, job.version_id, graph.lease, keep_answers=not is_superseded
                )
            if is_superseded:
                await self._remove_version(facts)
            else:
                async with self._ports.database.tenant(job.tenant_id) as session:
                    await IndexStates(session).mark_clean(job.version_id)

    async def unowned_version(self, job: PurgeUnownedVersion) -> None:
        """Remove what a task that outlived its document left in the graph engine."""
        async with self._ports.database.tenant(job.tenant_id) as session:
            if await IngestionRepository(session).find_version(job.version_id) is not None:
                return
            ref = await PurgeRepository(session).find_workspace(job.workspace_id)
        async with self._graph_of(ref, needed=True) if ref is not None else nullcontext() as graph:
            if graph is not None:
                await self._ports.graph_index.remove(graph.workspace, job.version_id, graph.lease)

    async def workspace(self, job: PurgeWorkspace) -> None:
        """Remove a workspace that is being deleted, document by document, so that no transaction grows with it.

        Each step is a sign of life: the sweeper sends again what gave none, and repetitions would fill the workers.
        """
        async with self._ports.database.tenant(job.tenant_id) as session:
            repository = PurgeRepository(session)
            ref = await repository.find_deleting_workspace(job.workspace_id)
            if ref is None:
                return
            documents = await repository.list_documents(job.workspace_id)
            has_graph = await repository.workspace_has_graph(job.workspace_id)
        for document_id in documents:
            async with self._ports.database.tenant(job.tenant_id) as session:
                await stop_document(session, ref.workspace_id, document_id)
                await PurgeRepository(session).touch_workspace(ref.workspace_id)
        async with self._graph_of(ref, needed=has_graph) as graph:
            if graph is not None:
                await self._ports.graph_index.clear(graph.workspace, graph.lease)
            for document_id in documents:
                await self._remove_rows(ref, document_id)
                async with self._ports.database.tenant(job.tenant_id) as session:
                    await PurgeRepository(session).touch_workspace(ref.workspace_id)
        removed = QUERIES_AT_ONCE
        while removed == QUERIES_AT_ONCE:
            async with self._ports.database.tenant(job.tenant_id) as session:
                removed = await PurgeRepository(session).remove_queries(ref.workspace_id, QUERIES_AT_ONCE)
                await PurgeRepository(session).touch_workspace(ref.workspace_id)
        async with self._ports.database.tenant(job.tenant_id) as session:
            repository = PurgeRepository(session)
            await repository.redact_audit_log(ref.workspace_id)
            await repository.remove_workspace(ref.workspace_id)

    async def _graph_versions(self, session: TenantSession, document_id: UUID) -> Sequence[UUID]:
        versions = await PurgeRepository(session).list_versions(document_id)
        return [version_id for version_id in versions if await IngestionRepository(session).may_be_in_graph(version_id)]

    @asynccontextmanager
    async def _graph_of(self, ref: WorkspaceRef, *, needed: bool) -> AsyncIterator[_WritableGraph | None]:
        """The right to write the workspace's graph for the block, where there is something to write."""
        if not needed:
            yield None
            return
        workspace = await self._ports.workspaces.open(ref.tenant_id, ref.workspace_id)
        with meter_usage() as meter:
            try:
                async with self._ports.leases.hold(ref, wait_seconds=LEASE_WAIT_SECONDS, longest_line=1) as lease:
                    yield _WritableGraph(workspace, lease)
            finally:
                # What is left of an entity's text may be summed up anew.
                if meter.totals:
                    async with self._ports.database.tenant(ref.tenant_id) as session:
                        await UsageLedger(session).add(meter, ref.workspace_id)

    async def _remove_version(self, facts: VersionFacts) -> None:
        async with self._ports.database.tenant(facts.ref.tenant_id) as session:
            keys = await PurgeRepository(session).list_own_blob_keys(facts.version_id)
        await self._ports.blobs.delete(keys)
        async with self._ports.database.tenant(facts.ref.tenant_id) as session:
            repository = PurgeRepository(session)
            await self._ports.lazy_index.remove(session, facts.ref, facts.version_id)
            await repository.remove_version(facts.version_id)
            await repository.remove_blobs(keys)
            # How rare a word or a concept is has changed.
            await IngestionRepository(session).bump_corpus(facts.ref.workspace_id)

    async def _remove_rows(self, ref: WorkspaceRef, document_id: UUID) -> None:
        """Originals first: a crash in between leaves rows, by which the purge is found and repeated."""
        async with self._ports.database.tenant(ref.tenant_id) as session:
            keys = await PurgeRepository(session).list_blob_keys(document_id)
        await self._ports.blobs.delete(keys)
        async with self._ports.database.tenant(ref.tenant_id) as session:
            repository = PurgeRepository(session)
            version_ids = await repository.list_versions(document_id)
            for version_id in version_ids:
                await self._ports.lazy_index.remove(session, ref, version_id)
                await repository.remove_version(version_id)
            await repository.remove_blobs(keys)
            await repository.remove_document(document_id)
            await repository.redact_audit_log(ref.workspace_id, document_id)
            # Looked at before the commit: the document is `deleting` until this has counted nothing.
            if left := await repository.traces(document_id, version_ids):
                raise RemovalIncomplete("rows of the document are left", left=left)
            await IngestionRepository(session).bump_corpus(ref.workspace_id)
