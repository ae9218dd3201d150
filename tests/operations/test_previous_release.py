"""A rolling upgrade: workers of the previous release serve the API of this one, on the schema of this one.

The previous release is the newest tag, or the commit in TRELLIS_PREVIOUS_RELEASE (`make test-upgrade` names one while there is no
tag). It runs with the packages of this one.
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.architecture.sources import ROOT
from tests.cluster import Cluster
from tests.live import LiveStack
from tests.operations.conftest import DOCUMENTS
from tests.operations.installation import FILES, QUESTION, call

# After the databases of the live stacks of all pytest processes.
NUMBER = 8
PATIENCE_SECONDS = 120
POLL_SECONDS = 0.2


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def previous_code(tmp_path: Path) -> Iterator[Path]:
    """The code of the previous release, in a folder of its own."""
    release = os.environ.get("TRELLIS_PREVIOUS_RELEASE") or git("tag", "--sort=-creatordate", "--merged").split("\n")[0]
    if not release:
        pytest.skip("there is no release yet: name a commit with TRELLIS_PREVIOUS_RELEASE, or run make test-upgrade")
    if (
        subprocess.run(["git", "cat-file", "-e", f"{release}^{{commit}}"], cwd=ROOT, capture_output=True).returncode
        != 0
    ):
        pytest.skip(f"{release} is not in this copy of the repository: fetch its history")
    folder = tmp_path / "previous"
    git("worktree", "add", "--detach", str(folder), release)
    yield folder
    git("worktree", "remove", "--force", str(folder))


@pytest.fixture
def mixed(previous_code: Path, cluster: Cluster, worker_number: int) -> Iterator[LiveStack]:
    """This release's schema and API, the previous one's worker and beat."""
    stack = LiveStack.create(cluster, NUMBER + worker_number)
    processes = stack.processes
    try:
        processes.start_api()
        processes.environment["PYTHONPATH"] = str(previous_code)
        processes.start_worker()
        processes.start_beat()
        processes.wait_until_ready()
        yield stack
    finally:
        processes.stop()


def test_the_previous_worker_works_on_the_new_schema(mixed: LiveStack) -> None:
    asyncio.run(from_upload_to_deletion(mixed))
    mixed.processes.check()


async def from_upload_to_deletion(stack: LiveStack) -> None:
    headers = {"Authorization": f"Bearer {await stack.new_key()}"}
    async with httpx.AsyncClient(base_url=f"{stack.api_url}/v1", headers=headers, timeout=60) as client:
        made = await call(client, "POST", "/workspaces", json={"name": "upgrade", "engines": ["lazy", "graph"]})
        path = f"/workspaces/{made['id']}"
        parts = [("files", (name, (DOCUMENTS / name).read_bytes())) for name in FILES]
        uploaded = await call(client, "POST", f"{path}/documents", files=parts)
        for row in uploaded["documents"]:
            document = f"{path}/documents/{row['id']}"
            await until(client, document, "ready")
        for mode in ("lazy", "mix"):
            answer = await call(client, "POST", f"{path}/query", json={"query": QUESTION, "mode": mode})
            assert answer["citations"], mode
        assert (await client.delete(document)).status_code == httpx.codes.ACCEPTED
        await until(client, document, None)


async def until(client: httpx.AsyncClient, document: str, status: str | None) -> None:
    """Wait for a document's status, or for its end."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = await client.get(document)
        found = answer.json()["status"] if answer.is_success else None
        if found == status:
            return
        assert found not in ("failed", "partial"), answer.text
        assert time.monotonic() < deadline, answer.text
        await asyncio.sleep(POLL_SECONDS)
