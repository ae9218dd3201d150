"""Makes documents of uploads: stores the bytes, then the rows, then names the jobs. Indexing is the workers'."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import func

from app.blobs.store import BlobStore
from app.db.base import TenantId, WorkspaceId
from app.db.models import Document, Workspace
from app.db.session import Database, TenantSession
from app.domain.documents.originals import Original, Originals, Upload, add_versions
from app.domain.documents.records import DocumentRecord
from app.domain.documents.repository import DocumentRepository
from app.domain.workspaces.metadata_fields import check_metadata
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.domain.workspaces.settings import WorkspaceSettings


@dataclass(frozen=True)
class Uploaded:
    """The document that holds an upload: a new one, or one of the workspace that has the same bytes already."""

    record: DocumentRecord
    is_duplicate: bool


class UploadService:
    def __init__(self, database: Database, blobs: BlobStore, *, max_upload_bytes: int) -> None:
        self._database = database
        self._originals = Originals(blobs, max_bytes=max_upload_bytes)

    async def check_open(self, tenant_id: TenantId, workspace_id: WorkspaceId) -> None:
        """Raises WorkspaceNotFound or WorkspaceDeleting."""
        async with self._database.tenant(tenant_id) as session:
            refuse_deleting((await WorkspaceRepository(session).get(workspace_id)).row)

    async def upload(
        self,
        tenant_id: TenantId,
        workspace_id: WorkspaceId,
        uploads: Sequence[Upload],
        metadata: dict[str, Any],
        *,
        allow_duplicates: bool = False,
    ) -> Sequence[Uploaded]:
        """Take in all of `uploads` or none. No transaction is open while bytes are written.

        Bytes that are the newest content of a document already make no further one unless `allow_duplicates`.
        Raises WorkspaceNotFound, WorkspaceDeleting, MetadataMismatch, FileTooLarge, UnsupportedFormat or
        BlobStoreUnavailable.
        """
        await self.check_open(tenant_id, workspace_id)
        async with self._originals.store(tenant_id, workspace_id, uploads) as stored:
            async with self._database.tenant(tenant_id) as session:
                found = await self._write_rows(session, workspace_id, stored.items, metadata, allow_duplicates)
                pairs = zip(stored.items, found, strict=True)
                stored.settle(unneeded=[original for original, uploaded in pairs if uploaded.is_duplicate])
            return found

    async def _write_rows(
        self,
        session: TenantSession,
        workspace_id: WorkspaceId,
        originals: Sequence[Original],
        metadata: dict[str, Any],
        allow_duplicates: bool,
    ) -> Sequence[Uploaded]:
        # Locked, so that the profile cannot change between reading its hash and storing the versions, and so that two
        # uploads of the same bytes see each other.
        workspace = (await WorkspaceRepository(session).get(workspace_id, for_update=True)).row
        refuse_deleting(workspace)
        check_metadata(WorkspaceSettings.stored(workspace.settings).metadata_fields, metadata)
        documents = DocumentRepository(session, workspace_id)
        digests = {original.stored.sha256 for original in originals}
        known = {} if allow_duplicates else await documents.find_same_contents(digests)
        new: dict[UUID, Original] = {}
        ids: list[tuple[UUID, bool]] = []
        for original in originals:
            same = known.get(original.stored.sha256)
            document_id = same or uuid4()
            ids.append((document_id, same is not None))
            if same is None:
                new[document_id] = original
                if not allow_duplicates:
                    known[original.stored.sha256] = document_id
        await self._write_new(session, workspace, new, metadata)
        records = {record.document.id: record for record in await documents.get_many({each for each, _ in ids})}
        return [Uploaded(records[document_id], is_duplicate) for document_id, is_duplicate in ids]

    async def _write_new(
        self, session: TenantSession, workspace: Workspace, new: Mapping[UUID, Original], metadata: dict[str, Any]
    ) -> None:
        if not new:
            return
        # now() is the same for the whole transaction; lists show the documents of one upload in its order.
        moment = func.clock_timestamp()
        rows = [
            {
                "tenant_id": workspace.tenant_id, "workspace_id": workspace.id, "id": document_id,
                "title": original.upload.title, "filename": original.upload.filename, "metadata_": metadata,
                "created_at": moment, "updated_at": moment,
            }
            for document_id, original in new.items()
        ]  # fmt: skip
        await DocumentRepository(session, WorkspaceId(workspace.id)).add_rows(Document, rows)
        await add_versions(session, workspace, [(document_id, 1, original) for document_id, original in new.items()])
