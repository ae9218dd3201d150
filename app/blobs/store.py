"""Keeps originals in a local folder or an S3 bucket, under keys made of our ids. Which rows point to them is domain business."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import UUID

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore, from_url

from app.errors import NotFound, Unavailable

STREAM_BYTES = 256 * 1024
LIST_BATCH = 1000
# A request waits for an answer, and a job is tried again: neither gains from the library's three minutes.
RETRY_SECONDS = 20
MAX_RETRIES = 4
_ID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
KEY = re.compile(f"{_ID}/{_ID}/{_ID}")


class BlobMissing(NotFound):
    """The row of an original exists, but the object does not."""

    code = "original_missing"
    title = "The original is missing"


class BlobStoreUnavailable(Unavailable):
    code = "blob_store_unavailable"
    title = "The object storage does not answer"


@dataclass(frozen=True)
class StoredBlob:
    """What was written: the key to find it by, its length in bytes and its SHA-256."""

    key: str
    size_bytes: int
    sha256: bytes


def blob_key(tenant_id: UUID, workspace_id: UUID, blob_id: UUID) -> str:
    """Where an original lies. Nothing of a user's choosing is part of it."""
    return f"{tenant_id}/{workspace_id}/{blob_id}"


class BlobStore:
    """One store for all tenants. An object is there whole or not at all."""

    def __init__(self, url: str) -> None:
        """`url` is `file:///folder` (created if missing) or `s3://bucket/prefix` (credentials from the environment).

        Raises ValueError for an endpoint without TLS that `AWS_ALLOW_HTTP` does not allow.
        """
        self._store = _open(url)
        self._folder = Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None

    async def put(self, key: str, chunks: AsyncIterator[bytes]) -> StoredBlob:
        """Write a stream. What `chunks` raises is raised on, and nothing is left behind; raises BlobStoreUnavailable."""
        digest = sha256()
        size = 0
        failure: Exception | None = None

        async def counted() -> AsyncIterator[bytes]:
            nonlocal size, failure
            try:
                async for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    yield chunk
            except Exception as error:
                failure = error
                raise

        try:
            with _translated(key):
                await obstore.put_async(self._store, key, counted())
        except (BlobStoreUnavailable, BlobMissing):
            # A full disk under an upload says nothing about the object storage.
            if failure is not None:
                raise failure from None
            raise
        return StoredBlob(key, size, digest.digest())

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """The object piece by piece; raises BlobMissing or BlobStoreUnavailable."""
        with _translated(key):
            result = await obstore.get_async(self._store, key)
            async for chunk in result.stream(STREAM_BYTES):
                yield bytes(chunk)

    async def fetch(self, key: str, path: Path) -> None:
        """Copy the object to a local file; raises BlobMissing or BlobStoreUnavailable."""
        # A worker's own scratch file: these writes go to the page cache and do not block the loop for long.
        with path.open("wb") as file:
            async for chunk in self.stream(key):
                file.write(chunk)

    async def list(self, prefix: str) -> Sequence[str]:
        """Keys of all objects below `prefix`, which ends in `/`. Raises BlobStoreUnavailable."""
        with _translated(prefix):
            return [entry["path"] async for page in obstore.list(self._store, prefix) for entry in page]

    async def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; one that is not there is no error. Raises BlobStoreUnavailable."""
        if self._folder is None:
            # A thousand to a request, of which none fails for one that is gone.
            with _translated(""):
                await obstore.delete_async(self._store, [*keys])
            return
        for key in keys:
            try:
                with _translated(key):
                    await obstore.delete_async(self._store, key)
            except BlobMissing:
                continue

    async def list_old(self, age: timedelta) -> AsyncIterator[Sequence[str]]:
        """Keys of originals that were written longer ago than `age`, in batches; other objects are not ours.

        Raises BlobStoreUnavailable.
        """
        before = datetime.now(UTC) - age
        with _translated(""):
            async for batch in obstore.list(self._store, chunk_size=LIST_BATCH):
                keys = [entry["path"] for entry in batch if entry["last_modified"] < before]
                if ours := [key for key in keys if KEY.fullmatch(key)]:
                    yield ours

    async def remove_unfinished(self, age: timedelta, *, is_dry_run: bool = False) -> int:
        """Remove the beginnings of uploads that a killed process left in a local folder; how many there were.

        In S3 they are parts of multipart uploads: a rule of the bucket's life cycle ends those.
        """
        if self._folder is None:
            return 0
        return await asyncio.to_thread(_remove_unfinished, self._folder, age, is_dry_run)


def _open(url: str) -> ObjectStore:
    if url.startswith("file:"):
        # A folder is made with its first file, and goes with its last one.
        return from_url(url, mkdir=True, automatic_cleanup=True)
    endpoint = (
        os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL")
        or os.environ.get("AWS_ENDPOINT", "")
    )
    # The library refuses it too, but not before the first upload, and in words that do not say why.
    if endpoint.startswith("http://") and os.environ.get("AWS_ALLOW_HTTP", "").lower() not in ("true", "1"):
        raise ValueError(
            "AWS_ENDPOINT_URL begins with http://: originals would be sent unencrypted; AWS_ALLOW_HTTP=true allows it"
        )
    return from_url(url, retry_config={"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)})


def _remove_unfinished(folder: Path, age: timedelta, is_dry_run: bool) -> int:
    before = (datetime.now(UTC) - age).timestamp()
    # The storage client writes to the key with a number behind it, and renames at the end.
    found = [path for path in folder.glob("*/*/*#*") if path.stat().st_mtime < before]
    if not is_dry_run:
        for path in found:
            path.unlink(missing_ok=True)
    return len(found)


@contextmanager
def _translated(key: str) -> Iterator[None]:
    """Errors of the storage client as ours; they are not chained to the log's eye, for they quote paths only."""
    try:
        yield
    except FileNotFoundError as error:
        raise BlobMissing("the original is no longer in the object storage", key=key) from error
    except (BaseError, OSError) as error:
        raise BlobStoreUnavailable("the object storage did not do what was asked", key=key) from error
