"""Postgres has no room left: what is asked of it is refused, nothing is lost, and work goes on once it has some."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.chaos.stack import LEASE_SECONDS, ChaosStack
from tests.chaos.stages import PLACE, documents, held_by_model, nothing_is_left
from tests.chaos.user import User

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

SPARE_BYTES = 48 << 20
PIECE = bytes(1 << 16)


@pytest.fixture
def small_disk(stack: ChaosStack) -> Iterator[Path]:
    """The cluster's files on a file system of their own, which is little larger than they are; its folder."""
    data = stack.servers.postgres.data
    with stopped(stack):
        away = data.rename(data.with_name("postgres-away"))
        data.mkdir()
        if (told := mount(data, size_of(away) + SPARE_BYTES)) is not None:
            data.rmdir()
            away.rename(data)
        else:
            copy(away, data)
    if told is not None:
        pytest.skip(f"no file system can be mounted here: {told}")
    yield data
    with stopped(stack):
        shutil.rmtree(away)
        copy(data, away)
        subprocess.run(["umount", str(data)], check=True)
        data.rmdir()
        away.rename(data)


@contextmanager
def stopped(stack: ChaosStack) -> Iterator[None]:
    stack.stop_postgres()
    try:
        yield
    finally:
        stack.start_postgres()


def mount(place: Path, size: int) -> str | None:
    """What was in the way, if anything was."""
    if shutil.which("mount") is None:
        return "there is no `mount`"
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True, text=True
    )
    return None if made.returncode == 0 else made.stderr.strip()


def copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", f"{source}/.", str(target)], check=True)
    shutil.copymode(source, target)
    os.chown(target, source.stat().st_uid, source.stat().st_gid)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))


def fill(filler: Path) -> None:
    with filler.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(PIECE)
        except OSError:
            pass


async def until_refused(user: User) -> httpx.Response:
    """The first answer to a writing request that is not what it should be: there is room within files for some rows."""
    while True:
        answer = await user.ask("POST", "/v1/workspaces", json={"name": uuid4().hex}, repeat=False)
        if not answer.is_success:
            return answer


async def test_nothing_is_lost_where_postgres_has_no_room(stack: ChaosStack, user: User, small_disk: Path) -> None:
    """With documents under way, of which the first are being extracted when the room ends."""
    await user.make_workspaces([PLACE])
    worker = stack.start_worker()
    async with held_by_model(stack, "extract") as reached:
        await user.upload(documents(3))
        await reached()
        filler = small_disk / "filler"
        fill(filler)
        refused = await until_refused(user)
    assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable")
    # Longer than the worker's claims hold.
    await asyncio.sleep(LEASE_SECONDS + 1)
    filler.unlink()
    if stack.servers.children[0].ended():
        await asyncio.to_thread(stack.start_postgres)
    await user.upload(documents(6)[3:])
    assert {item["status"] for item in (await user.settled(PLACE)).values()} == {"ready"}
    await nothing_is_left(stack)
    told = stack.log(worker.name)
    assert "DiskFullError" in told
    assert "job_crashed" not in told
