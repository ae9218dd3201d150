"""Originals in a bucket: the blob store against a server of S3 that checks signatures, and what it sends to one."""

import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from aiohttp import web

from app.blobs.store import BlobMissing, BlobStore, BlobStoreUnavailable, blob_key
from app.devstack.postgres import free_port

RCLONE = Path(sys.executable).parent / "rclone"
ACCESS_KEY, SECRET = "tester", "sesame-sesame"
BUCKET, PREFIX = "originals", "of/trellis"
START_SECONDS = 20
# More than the five megabytes of a part: several parts are sent.
PART = b"x" * 6_000_000


@dataclass
class S3Server:
    """rclone's S3 on a folder: a process that can be killed and started again on the same port."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [
            str(RCLONE), "serve", "s3", "--config", "/dev/null", "--vfs-cache-mode", "off", "--log-level", "ERROR",
            "--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{ACCESS_KEY},{SECRET}", str(self.folder),
        ]  # fmt: skip
        self.process = subprocess.Popen(command)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                httpx.get(self.url)
                return
            except httpx.TransportError:
                assert self.process.poll() is None, "the server of S3 has ended"
                assert time.monotonic() < deadline, "the server of S3 does not answer"
                time.sleep(0.05)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    if not RCLONE.exists():
        pytest.skip(f"there is no server of S3 for this platform: {RCLONE} is missing")
    folder = tmp_path_factory.mktemp("s3")
    (folder / BUCKET).mkdir()
    server = S3Server(folder)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the variables that an installation with this endpoint has."""

    def give(endpoint: str, **other: str) -> None:
        given = {
            "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
        }  # fmt: skip
        for name, value in (given | other).items():
            monkeypatch.setenv(name, value)

    return give


@pytest.fixture
def store(server: S3Server, environment: Callable[..., None]) -> BlobStore:
    environment(server.url)
    return BlobStore(f"s3://{BUCKET}/{PREFIX}")


@pytest.fixture
def key() -> str:
    return blob_key(uuid4(), uuid4(), uuid4())


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def read(store: BlobStore, key: str) -> bytes:
    return b"".join([chunk async for chunk in store.stream(key)])


async def old(store: BlobStore) -> list[str]:
    return [key async for batch in store.list_old(timedelta(hours=-1)) for key in batch]


@pytest.mark.parametrize("content", [b"", b"short", PART * 2 + b"end"], ids=["empty", "one part", "several parts"])
async def test_an_original_comes_is_listed_and_goes(
    store: BlobStore, key: str, tmp_path: Path, server: S3Server, content: bytes
) -> None:
    stored = await store.put(key, pieces(content[:7_000_000], content[7_000_000:]))
    assert (stored.size_bytes, stored.sha256) == (len(content), sha256(content).digest())
    assert (server.folder / BUCKET / PREFIX / key).read_bytes() == content
    await store.fetch(key, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    assert await store.list(f"{key.split('/')[0]}/") == [key]
    assert key in await old(store)
    await store.delete([key, key])
    assert await store.list(f"{key.split('/')[0]}/") == []
    assert key not in await old(store)
    with pytest.raises(BlobMissing):
        await read(store, key)


async def test_another_workspaces_keys_are_not_listed(store: BlobStore) -> None:
    tenant_id, first, second = uuid4(), uuid4(), uuid4()
    keys = [blob_key(tenant_id, workspace_id, uuid4()) for workspace_id in (first, second)]
    for key in keys:
        await store.put(key, pieces(b"text"))
    assert await store.list(f"{tenant_id}/{first}/") == keys[:1]
    assert sorted(await store.list(f"{tenant_id}/")) == sorted(keys)
    await store.delete(keys)


@pytest.mark.parametrize(
    "wrong", [{"AWS_SECRET_ACCESS_KEY": "another-secret"}, {"AWS_ACCESS_KEY_ID": "nobody"}], ids=["secret", "key"]
)
async def test_a_wrong_key_is_told_as_a_store_that_is_unavailable(
    server: S3Server, environment: Callable[..., None], key: str, wrong: dict[str, str]
) -> None:
    environment(server.url, **wrong)
    store = BlobStore(f"s3://{BUCKET}/{PREFIX}")
    for refused in (
        store.put(key, pieces(b"text")),
        read(store, key),
        store.delete([key]),
        store.list("a/"),
        old(store),
    ):
        with pytest.raises(BlobStoreUnavailable) as told:
            await refused
        assert SECRET not in str(told.value)


async def test_many_are_removed_at_once_and_none_is_no_error(store: BlobStore) -> None:
    tenant, workspace = uuid4(), uuid4()
    keys = [blob_key(tenant, workspace, uuid4()) for _ in range(30)]
    for key in keys[1:]:
        await store.put(key, pieces(b"text"))
    await store.delete([])
    await store.delete(key for key in keys)
    assert await store.list(f"{tenant}/") == []


async def test_a_bucket_that_is_not_there_keeps_nothing(
    server: S3Server, environment: Callable[..., None], key: str
) -> None:
    environment(server.url)
    with pytest.raises((BlobStoreUnavailable, BlobMissing)):
        await BlobStore("s3://another").put(key, pieces(b"text"))
    assert not (server.folder / "another").exists()


async def test_an_outage_within_an_upload_leaves_nothing(store: BlobStore, key: str, server: S3Server) -> None:
    async def cut_off() -> AsyncIterator[bytes]:
        yield PART
        server.kill()
        yield PART
        yield PART

    try:
        with pytest.raises(BlobStoreUnavailable):
            await store.put(key, cut_off())
    finally:
        server.start()
    assert await store.list(f"{key.split('/')[0]}/") == []
    with pytest.raises(BlobMissing):
        await read(store, key)
    assert (await store.put(key, pieces(PART, PART))).size_bytes == 2 * len(PART)
    await store.delete([key])


@pytest.mark.parametrize("error", [OSError("no space left"), FileNotFoundError("gone"), ValueError("too large")])
async def test_a_source_that_fails_is_not_the_store_that_is_away(store: BlobStore, key: str, error: Exception) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield PART
        yield PART
        raise error

    with pytest.raises(type(error)) as told:
        await store.put(key, failing())
    assert told.value is error
    assert await store.list(f"{key.split('/')[0]}/") == []


def test_an_endpoint_without_tls_has_to_be_allowed(environment: Callable[..., None]) -> None:
    environment("http://objects.example.com", AWS_ALLOW_HTTP="false")
    with pytest.raises(ValueError, match="AWS_ALLOW_HTTP"):
        BlobStore(f"s3://{BUCKET}")
    environment("https://objects.example.com", AWS_ALLOW_HTTP="false")
    BlobStore(f"s3://{BUCKET}")


async def test_a_session_token_goes_with_the_request(environment: Callable[..., None], key: str) -> None:
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("x-amz-security-token"))
        return web.Response(body=b"text", headers={"Last-Modified": "Tue, 01 Dec 2026 10:00:00 GMT", "ETag": '"a"'})

    application = web.Application()
    application.router.add_route("GET", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        environment(f"http://127.0.0.1:{port}", AWS_SESSION_TOKEN="lent-for-an-hour")
        assert await read(BlobStore(f"s3://{BUCKET}"), key) == b"text"
    finally:
        await runner.cleanup()
    assert seen == ["lent-for-an-hour"]
