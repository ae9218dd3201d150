"""The blob store on a local folder: streams, atomicity, deletion, and what is told apart when something is missing."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pytest

from app.blobs.store import BlobMissing, BlobStore, blob_key


async def pieces(*parts: bytes, fails: bool = False) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if fails:
        raise ValueError("too large")


async def read(store: BlobStore, key: str) -> bytes:
    return b"".join([chunk async for chunk in store.stream(key)])


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(f"file://{tmp_path}/blobs")


@pytest.fixture
def key() -> str:
    return blob_key(uuid4(), uuid4(), uuid4())


async def test_a_stream_comes_back_with_its_length_and_digest(store: BlobStore, key: str, tmp_path: Path) -> None:
    content = bytes(range(256)) * 30_000
    stored = await store.put(key, pieces(content[:7_000_000], content[7_000_000:]))
    assert (stored.size_bytes, stored.sha256) == (len(content), sha256(content).digest())
    assert await read(store, key) == content
    await store.fetch(key, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content


async def test_an_empty_original_is_kept_as_such(store: BlobStore, key: str) -> None:
    assert (await store.put(key, pieces())).size_bytes == 0
    assert await read(store, key) == b""


async def test_a_stream_that_fails_leaves_nothing_behind(store: BlobStore, key: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="too large"):
        await store.put(key, pieces(b"x" * 6_000_000, b"y" * 6_000_000, fails=True))
    assert files(tmp_path) == []
    with pytest.raises(BlobMissing):
        await read(store, key)


async def test_folders_go_with_their_last_original_and_come_back(store: BlobStore, tmp_path: Path) -> None:
    tenant_id, workspace_id = uuid4(), uuid4()

    async def come_and_go() -> None:
        for _ in range(30):
            key = blob_key(tenant_id, workspace_id, uuid4())
            await store.put(key, pieces(b"x"))
            await store.delete([key])

    await asyncio.gather(*(come_and_go() for _ in range(8)))
    assert list((tmp_path / "blobs").iterdir()) == []


async def test_deleting_twice_is_no_error(store: BlobStore, key: str) -> None:
    await store.put(key, pieces(b"text"))
    await store.delete([key])
    await store.delete([key])
    with pytest.raises(BlobMissing):
        await read(store, key)
