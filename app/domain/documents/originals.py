"""Takes in the bytes of documents: checks their format, stores them, and removes those that no row came to name."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from app.blobs.store import BlobStore, BlobStoreUnavailable, StoredBlob, blob_key
from app.db.base import TenantId, WorkspaceId
from app.db.models import Blob, IndexState, Version, Workspace
from app.db.session import TenantSession
from app.domain.documents.errors import FileTooLarge
from app.domain.documents.repository import DocumentRepository
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
class Original:
    """An upload whose bytes are stored, under `blob_id`."""

    upload: Upload
    media_type: str
    blob_id: UUID
    stored: StoredBlob


class StoredOriginals:
    """Originals without rows yet. Until `settle` says which are not needed, all of them are removed at the end."""

    def __init__(self) -> None:
        self.items: list[Original] = []
        self.unneeded: list[Original] = self.items

    def settle(self, *, unneeded: Iterable[Original] = ()) -> None:
        """Call it before the commit of their rows, which may succeed although its answer is lost: rather an object too
        many than a document without its original."""
        self.unneeded = list(unneeded)


class Originals:
    def __init__(self, blobs: BlobStore, *, max_bytes: int) -> None:
        self._blobs = blobs
        self._max_bytes = max_bytes

    @asynccontextmanager
    async def store(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, uploads: Sequence[Upload]
    ) -> AsyncIterator[StoredOriginals]:
        """Check all of `uploads`, then store them for the block. No transaction should be open outside.

        Raises FileTooLarge, UnsupportedFormat or BlobStoreUnavailable.
        """
        media_types = [self.check(upload) for upload in uploads]
        stored = StoredOriginals()
        try:
            for upload, media_type in zip(uploads, media_types, strict=True):
                blob_id = uuid4()
                blob = await self._blobs.put(blob_key(tenant_id, workspace_id, blob_id), upload.open())
                stored.items.append(Original(upload, media_type, blob_id, blob))
            yield stored
        finally:
            # There are no rows, so nothing else would remove these objects soon.
            with suppress(BlobStoreUnavailable):
                await self._blobs.delete([item.stored.key for item in stored.unneeded])

    def check(self, upload: Upload) -> str:
        """The media type that `upload` is stored under."""
        if upload.size_bytes > self._max_bytes:
            raise FileTooLarge(
                f"{upload.filename} has {upload.size_bytes} bytes; at most {self._max_bytes} are accepted.",
                filename=upload.filename, size_bytes=upload.size_bytes, limit_bytes=self._max_bytes,
            )  # fmt: skip
        try:
            found = detect_format(upload.filename, upload.content_type, upload.head)
        except UnsupportedFormat as error:
            facts = {**error.facts, "filename": upload.filename}
            raise UnsupportedFormat(f"{upload.filename}: {error.detail}", **facts) from None
        declared, charset = parse_media_type(upload.content_type)
        media_type = declared if declared in found.media_types else found.media_types[0]
        return f"{media_type}; charset={charset}" if charset and found.container == "text" else media_type


async def add_versions(session: TenantSession, workspace: Workspace, new: Sequence[tuple[UUID, int, Original]]) -> None:
    """The rows of versions (document, ordinal, content) that are to be indexed under the workspace's profile, and their
    jobs, in the order given. `workspace` is locked."""
    owner = {"tenant_id": workspace.tenant_id, "workspace_id": workspace.id}
    documents = DocumentRepository(session, WorkspaceId(workspace.id))
    blobs = [
        {
            **owner, "id": original.blob_id, "key": original.stored.key, "sha256": original.stored.sha256,
            "size_bytes": original.stored.size_bytes,
        }
        for _, _, original in new
    ]  # fmt: skip
    versions: list[dict[str, Any]] = [
        {
            **owner, "id": uuid4(), "document_id": document_id, "blob_id": original.blob_id, "ordinal": ordinal,
            "media_type": original.media_type, "index_profile_hash": workspace.index_profile_hash,
        }
        for document_id, ordinal, original in new
    ]  # fmt: skip
    ids: list[UUID] = [version["id"] for version in versions]
    await documents.add_rows(Blob, blobs)
    await documents.add_rows(Version, versions)
    states = [{**owner, "version_id": each, "engine": engine} for each in ids for engine in workspace.engines]
    await documents.add_rows(IndexState, states)
    for version_id in ids:
        enqueue(session, ProcessVersion(**owner, version_id=version_id))
