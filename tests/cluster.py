"""The real Postgres and Redis of a test run: started once, shared by all its pytest processes, gone at its end.

The process that pytest was started as owns a run folder; its workers find it in the environment. Whichever process
needs the servers first starts them under a file lock, so that tests without a database cost nothing.
"""

import asyncio
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock
from pydantic import SecretStr

from app.db.provision import RolePasswords, provision_database
from app.db.schema import upgrade_schema
from app.db.session import Database
from app.devstack.servers import Servers
from app.domain.models.offline import register_offline_models
from app.domain.models.service import ModelProfiles
from app.settings import DEVELOPMENT_SECRET
from deploy.prepare_age import server_programs

RUN_FOLDER = "TRELLIS_TEST_RUN_FOLDER"
# `age`: the servers of this run can hold graphs in Apache AGE, and the tests marked so run (`make test-age`).
GRAPH_STORE = os.environ.get("TRELLIS_TEST_GRAPH_STORE", "table")
HAS_AGE = GRAPH_STORE == "age"
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
    servers = _servers_with_age(folder) if HAS_AGE else Servers(folder, for_tests=True)
    servers.start()
    _started.append(servers)
    urls = asyncio.run(provision_database(servers.postgres.url(), TEMPLATE, servers.secrets.roles, age=HAS_AGE))
    upgrade_schema(urls.owner)
    asyncio.run(_seed(urls.owner))
    return Cluster(servers.postgres.url(), servers.redis.url(), servers.secrets.roles)


def _servers_with_age(folder: Path) -> Servers:
    return Servers(folder, for_tests=True, programs=server_programs(), settings={"shared_preload_libraries": "age"})


async def _seed(owner_url: str) -> None:
    database = Database(owner_url, pool_size=1)
    await register_offline_models(ModelProfiles(database, SecretStr(DEVELOPMENT_SECRET)))
    await database.close()
