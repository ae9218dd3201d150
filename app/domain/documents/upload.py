"""Takes in originals: checks them all, stores the bytes, then the rows, then names the jobs. Indexing is the workers'."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import func

from app.blobs.store import BlobStore, BlobStoreUnavailable, StoredBlob, blob_key
from app.db.base import TenantId, WorkspaceId
from app.db.models import Blob, Document, Version, Workspace
from app.db.session import Database, TenantSession
from app.domain.documents.errors import FileTooLarge
from app.domain.documents.records import DocumentRecord
from app.domain.documents.repository import DocumentRepository
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.jobs import ProcessVersion, enqueue
from app.parsing.errors import UnsupportedFormat
from app.parsing.formats import detect_format, parse_media_type


@dataclass(frozen=True)
class Upload:
    """One original as it came in. `filename` may hold folders; `head` is its beginning, `open` streams all of it."""

    title: str
    filename: str
    content_type: str | None
    size_bytes: int
    head: bytes
    open: Callable[[], AsyncIterator[bytes]]


@dataclass(frozen=True)
class Uploaded:
    """The document that holds an upload: a new one, or one of the workspace that has the same bytes already."""

    record: DocumentRecord
    is_duplicate: bool


@dataclass(frozen=True)
class _Accepted:
    upload: Upload
    media_type: str
    blob_id: UUID
    stored: StoredBlob


class UploadService:
    def __init__(self, database: Database, blobs: BlobStore, *, max_upload_bytes: int) -> None:
        self._database = database
        self._blobs = blobs
        self._max_upload_bytes = max_upload_bytes

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
        Raises WorkspaceNotFound, WorkspaceDeleting, FileTooLarge, UnsupportedFormat or BlobStoreUnavailable.
        """
        async with self._database.tenant(tenant_id) as session:
            refuse_deleting((await WorkspaceRepository(session).get(workspace_id)).row)
        media_types = [self._check(upload) for upload in uploads]
        written: list[_Accepted] = []
        orphans: list[str] = []
        try:
            for upload, media_type in zip(uploads, media_types, strict=True):
                blob_id = uuid4()
                stored = await self._blobs.put(blob_key(tenant_id, workspace_id, blob_id), upload.open())
                orphans.append(stored.key)
                written.append(_Accepted(upload, media_type, blob_id, stored))
            async with self._database.tenant(tenant_id) as session:
                found = await self._write_rows(session, workspace_id, written, metadata, allow_duplicates)
                # What comes next is the commit, which may succeed although its answer is lost: rather an object too
                # many than a document without its original.
                orphans.clear()
            orphans += [item.stored.key for item, each in zip(written, found, strict=True) if each.is_duplicate]
            return found
        finally:
            # There are no rows, so nothing else would ever remove these objects.
            with suppress(BlobStoreUnavailable):
                await self._blobs.delete(orphans)

    def _check(self, upload: Upload) -> str:
        """The media type that `upload` is stored under."""
        if upload.size_bytes > self._max_upload_bytes:
            raise FileTooLarge(
                f"{upload.filename} has {upload.size_bytes} bytes; at most {self._max_upload_bytes} are accepted.",
                filename=upload.filename, size_bytes=upload.size_bytes, limit_bytes=self._max_upload_bytes,
            )  # fmt: skip
        try:
            found = detect_format(upload.filename, upload.content_type, upload.head)
        except UnsupportedFormat as error:
            facts = {**error.facts, "filename": upload.filename}
            raise UnsupportedFormat(f"{upload.filename}: {error.detail}", **facts) from None
        declared, charset = parse_media_type(upload.content_type)
        media_type = declared if declared in found.media_types else found.media_types[0]
        return f"{media_type}; charset={charset}" if charset and found.container == "text" else media_type

    async def _write_rows(
        self,
        session: TenantSession,
        workspace_id: WorkspaceId,
        written: Sequence[_Accepted],
        metadata: dict[str, Any],
        allow_duplicates: bool,
    ) -> Sequence[Uploaded]:
        # Locked, so that the profile cannot change between reading its hash and storing the versions, and so that two
        # uploads of the same bytes see each other.
        workspace = (await WorkspaceRepository(session).get(workspace_id, for_update=True)).row
        refuse_deleting(workspace)
        documents = DocumentRepository(session, workspace_id)
        ids: list[tuple[UUID, bool]] = []
        for item in written:
            same = None if allow_duplicates else await documents.find_same_content(item.stored.sha256)
            ids.append((same or await self._write_row(session, workspace, item, metadata), same is not None))
        records = {record.document.id: record for record in await documents.get_many({each for each, _ in ids})}
        return [Uploaded(records[document_id], is_duplicate) for document_id, is_duplicate in ids]

    async def _write_row(
        self, session: TenantSession, workspace: Workspace, item: _Accepted, metadata: dict[str, Any]
    ) -> UUID:
        documents = DocumentRepository(session, workspace.id)
        owner = {"tenant_id": workspace.tenant_id, "workspace_id": workspace.id}
        document = Document(
            **owner,
            id=uuid4(),
            title=item.upload.title,
            filename=item.upload.filename,
            metadata_=metadata,
            # now() is the same for the whole transaction; lists show the documents of one upload in its order.
            created_at=func.clock_timestamp(),
            updated_at=func.clock_timestamp(),
        )
        session.add(document)
        await documents.add_blob(
            Blob(
                **owner, id=item.blob_id, key=item.stored.key, sha256=item.stored.sha256,
                size_bytes=item.stored.size_bytes,
            )
        )  # fmt: skip
        version = Version(
            **owner, id=uuid4(), document_id=document.id, blob_id=item.blob_id, ordinal=1, media_type=item.media_type,
            index_profile_hash=workspace.index_profile_hash,
        )  # fmt: skip
        await documents.add_version(version, workspace.engines)
        enqueue(session, ProcessVersion(**owner, version_id=version.id))
        return document.id
