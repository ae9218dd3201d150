"""A whole installation with offline models, two tenants and a key for each, for benchmarks that ask by HTTP."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import httpx
from pydantic import SecretStr

from app.db.provision import provision_database
from app.db.schema import upgrade_schema
from app.db.session import Database
from app.devstack.app_processes import AppProcesses
from app.devstack.run_folders import close_run_folder, open_run_folder
from app.devstack.servers import Servers
from app.domain.models.offline import register_offline_models
from app.domain.models.service import ModelProfiles
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService


@dataclass(frozen=True)
class Installation:
    """Running processes, the owner's database, and an admin's key of each tenant."""

    api_urls: tuple[str, ...]
    owner_url: str
    keys: tuple[str, str]
    api_pids: tuple[int, ...]

    @property
    def api_url(self) -> str:
        return self.api_urls[0]

    def client(self, key: str) -> httpx.Client:
        return httpx.Client(base_url=f"{self.api_url}/v1", headers={"Authorization": f"Bearer {key}"}, timeout=120)


@contextmanager
def installation(name: str, *, apis: int = 1) -> Iterator[Installation]:
    """Start it in a run folder of this name, and stop and remove it after the block. `apis`: processes that answer."""
    folder = open_run_folder(name)
    servers = Servers(folder)
    processes: AppProcesses | None = None
    try:
        servers.start()
        urls = asyncio.run(provision_database(servers.postgres.url(), "trellis", servers.secrets.roles))
        upgrade_schema(urls.owner)
        keys = asyncio.run(_seed(urls.owner, servers.secrets.secret_key))
        processes = AppProcesses(
            folder,
            {
                "TRELLIS_SECRET_KEY": servers.secrets.secret_key,
                "TRELLIS_LOG_LEVEL": "WARNING",
                "TRELLIS_DATABASE_URL": urls.app,
                "TRELLIS_ENGINE_DATABASE_URL": urls.engine,
                "TRELLIS_REDIS_URL": servers.redis.url(),
                "TRELLIS_BLOB_URL": f"file://{folder / 'blobs'}",
            },
        )
        children = [processes.start_api(number) for number in range(apis)]
        processes.start_worker()
        processes.start_beat()
        processes.wait_until_ready()
        yield Installation(tuple(processes.api_urls), urls.owner, keys, tuple(child.process.pid for child in children))
    finally:
        if processes is not None:
            processes.stop()
        servers.stop()
        close_run_folder(folder)


def make_workspace(client: httpx.Client, *engines: str) -> str:
    body = {"name": f"bench {uuid4()}", "engines": engines or ["lazy"]}
    return str(client.post("/workspaces", json=body).raise_for_status().json()["id"])


async def _seed(owner_url: str, secret_key: str) -> tuple[str, str]:
    database = Database(owner_url, pool_size=1)
    try:
        await register_offline_models(ModelProfiles(database, SecretStr(secret_key)))
        tenants = TenantService(database)
        keys = []
        for name in ("first", "second"):
            tenant = await tenants.create_tenant(name)
            keys.append(await tenants.create_key(tenant.id, name="bench", role=Role.ADMIN))
    finally:
        await database.close()
    return keys[0], keys[1]
