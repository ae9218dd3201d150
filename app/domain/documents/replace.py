"""Puts a new content in the place of a document's: a further version, to which each engine moves once it is indexed."""

import re
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import func

from app.blobs.store import BlobStore
from app.db.base import TenantId, WorkspaceId
from app.db.models import Document
from app.db.session import Database, TenantSession
from app.domain.documents.errors import DocumentDeleting
from app.domain.documents.originals import Original, Originals, Upload, add_versions
from app.domain.documents.records import DocumentRecord
from app.domain.documents.repository import DocumentRepository
from app.domain.ingestion.cancellation import cancel_version
from app.domain.workspaces.metadata_fields import check_metadata
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.domain.workspaces.settings import WorkspaceSettings


@dataclass(frozen=True)
class NewContent:
    """A content for a document that is there. Title and metadata stay as they are where none is given.

    `extension` is set where the content came without a file name: the document's own then gets this ending.
    """

    upload: Upload
    title: str | None
    metadata: dict[str, Any] | None
    extension: str | None = None


@dataclass(frozen=True)
class Replaced:
    """`is_unchanged`: the document has had these very bytes, so there is no new version."""

    record: DocumentRecord
    is_unchanged: bool


class ContentService:
    def __init__(self, database: Database, blobs: BlobStore, *, max_upload_bytes: int) -> None:
        self._database = database
        self._originals = Originals(blobs, max_bytes=max_upload_bytes)

    async def replace(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, document_id: UUID, content: NewContent
    ) -> Replaced:
        """Work on versions that are not ready yet is called off: nobody waits for them any more.

        Raises DocumentNotFound, DocumentDeleting, WorkspaceDeleting, MetadataMismatch, FileTooLarge, UnsupportedFormat or
        BlobStoreUnavailable.
        """
        async with self._database.tenant(tenant_id) as session:
            record = await DocumentRepository(session, workspace_id).get(document_id)
            _refuse_deleting(record.document)
        upload = _named(content, record.document.filename)
        async with self._originals.store(tenant_id, workspace_id, [upload]) as stored:
            [original] = stored.items
            async with self._database.tenant(tenant_id) as session:
                replaced = await self._write_rows(session, workspace_id, document_id, content, original)
                stored.settle(unneeded=[original] if replaced.is_unchanged else [])
            return replaced

    async def _write_rows(
        self,
        session: TenantSession,
        workspace_id: WorkspaceId,
        document_id: UUID,
        content: NewContent,
        original: Original,
    ) -> Replaced:
        documents = DocumentRepository(session, workspace_id)
        # Locked, so that the profile cannot change between reading its hash and storing the version.
        workspace = (await WorkspaceRepository(session).get(workspace_id, for_update=True)).row
        document = await documents.lock(document_id)
        _refuse_deleting(document)
        refuse_deleting(workspace)
        before = await documents.get(document_id)
        is_unchanged = before.blob.sha256 == original.stored.sha256
        if content.title not in (None, document.title):
            document.title = content.title
            await documents.outdate(document_id)
        if content.metadata is not None:
            check_metadata(WorkspaceSettings.stored(workspace.settings).metadata_fields, content.metadata)
            document.metadata_ = content.metadata
        if not is_unchanged:
            document.filename = original.upload.filename
            await cancel_version(session, workspace_id, before.version.id)
            await add_versions(session, workspace, [(document_id, before.version.ordinal + 1, original)])
        document.updated_at = func.now()
        await session.flush()
        record = await documents.get(document_id)
        await documents.bump_corpus_version()  # citations show title and file name
        return Replaced(record, is_unchanged)


def _named(content: NewContent, filename: str) -> Upload:
    """The upload under its own name, or under the document's with the ending that fits the content."""
    if content.extension is None:
        return content.upload
    return replace(content.upload, filename=re.sub(r"\.[^./\\]*$", "", filename) + content.extension)


def _refuse_deleting(document: Document) -> None:
    if document.deleting_at is not None:
        raise DocumentDeleting("This document is being deleted.", document_id=document.id)
