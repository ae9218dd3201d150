"""Changes documents after their upload: metadata, retry, deletion and indexing anew."""

from typing import Any
from uuid import UUID

from sqlalchemy import func

from app.db.base import WorkspaceId
from app.db.session import TenantSession
from app.domain.documents.errors import DocumentDeleting, NothingToCancel, NothingToRetry
from app.domain.documents.records import DocumentRecord
from app.domain.documents.repository import DocumentRepository
from app.domain.ingestion.cancellation import cancel_version
from app.domain.ingestion.states import IndexStates
from app.domain.workspaces.metadata_fields import check_metadata
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.domain.workspaces.settings import WorkspaceSettings
from app.jobs import IndexGraph, Job, ProcessVersion, PurgeDocument, enqueue
from app.retrieval.contract import Engine

MAX_JOBS_AT_ONCE = 500


class DocumentService:
    """Works on the documents of one workspace within the caller's transaction."""

    def __init__(self, session: TenantSession, workspace_id: WorkspaceId) -> None:
        self._session = session
        self._workspace_id = workspace_id
        self._documents = DocumentRepository(session, workspace_id)
        self._states = IndexStates(session)

    async def update(self, document_id: UUID, *, title: str | None, metadata: dict[str, Any] | None) -> DocumentRecord:
        """Change what is given; `metadata` replaces all there was. Raises DocumentNotFound, DocumentDeleting or
        MetadataMismatch."""
        document = await self._documents.lock(document_id)
        if document.deleting_at is not None:
            raise DocumentDeleting("This document is being deleted.", document_id=document_id)
        if title not in (None, document.title):
            document.title = title
            await self._documents.outdate(document_id)
        if metadata is not None:
            workspace = (await WorkspaceRepository(self._session).get(self._workspace_id)).row
            check_metadata(WorkspaceSettings.stored(workspace.settings).metadata_fields, metadata)
            document.metadata_ = metadata
        document.updated_at = func.now()
        await self._session.flush()
        record = await self._documents.get(document_id)
        await self._documents.bump_corpus_version()  # citations show the title
        return record

    async def retry(self, document_id: UUID) -> DocumentRecord:
        """Queue what failed, is partial or was cancelled. Raises DocumentNotFound, DocumentDeleting or NothingToRetry."""
        await self._documents.lock(document_id)
        record = await self._documents.get(document_id)
        if record.status == "deleting":
            raise DocumentDeleting("This document is being deleted.", document_id=document_id)
        retried = {
            state.engine
            for state in record.states
            if await self._states.retry(record.version.id, _engine(state.engine))
        }
        if not retried:
            raise NothingToRetry(
                f"The document is {record.status}; only what failed, is partial or was cancelled can be retried.",
                status=record.status,
            )
        job = ProcessVersion if "lazy" in retried else IndexGraph
        self._enqueue(job, record.version.id)
        record = await self._documents.get(document_id)
        await self._documents.bump_corpus_version()  # what was answered from, in part, is not until it is ready
        return record

    async def cancel(self, document_id: UUID) -> DocumentRecord:
        """Call off what is queued or under way. Raises DocumentNotFound, DocumentDeleting or NothingToCancel."""
        await self._documents.lock(document_id)
        record = await self._documents.get(document_id)
        if record.status == "deleting":
            raise DocumentDeleting("This document is being deleted.", document_id=document_id)
        if not await cancel_version(self._session, self._workspace_id, record.version.id):
            raise NothingToCancel(
                f"The document is {record.status}; nothing of it is waiting or being worked on.",
                document_status=record.status,
            )
        record = await self._documents.get(document_id)
        await self._documents.bump_corpus_version()
        return record

    async def delete(self, document_id: UUID) -> DocumentRecord:
        """From this commit on no query uses it; its rows and its original go in the background. Idempotent."""
        document = await self._documents.lock(document_id)
        record = await self._documents.get(document_id)
        if document.deleting_at is None:
            for state in record.states:
                await self._states.cancel(record.version.id, _engine(state.engine))
            document.deleting_at = func.now()
            document.updated_at = func.now()
            await self._session.flush()
        enqueue(
            self._session,
            PurgeDocument(tenant_id=self._session.tenant_id, workspace_id=self._workspace_id, document_id=document_id),
        )
        record = await self._documents.get(document_id)
        await self._documents.bump_corpus_version()
        return record

    async def reindex(self) -> int:
        """Queue a new version of every document indexed under an older profile; the old ones answer until it is ready.

        How many were queued. One that is still being worked on is left to the next call.
        """
        workspace = (await WorkspaceRepository(self._session).get(self._workspace_id, for_update=True)).row
        refuse_deleting(workspace)
        version_ids = await self._documents.renew_outdated(workspace)
        # The sweeper sends the rest, so that the caller of a large workspace does not wait for thousands of messages.
        for version_id in version_ids[:MAX_JOBS_AT_ONCE]:
            self._enqueue(ProcessVersion, version_id)
        return len(version_ids)

    def _enqueue(self, job: type[ProcessVersion] | type[IndexGraph], version_id: UUID) -> None:
        named: Job = job(tenant_id=self._session.tenant_id, workspace_id=self._workspace_id, version_id=version_id)
        enqueue(self._session, named)


def _engine(name: str) -> Engine:
    return "graph" if name == "graph" else "lazy"
