"""The real API and real workers as processes of their own, on a database and a Redis database that only they use."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from app.db.provision import DatabaseUrls, clone_database, database_urls
from app.db.session import Database
from app.devstack.app_processes import AppProcesses
from app.devstack.processes import Child
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService
from tests.cluster import RUN_FOLDER, Cluster

# Redis databases of live stacks lie beyond those of the pytest processes themselves.
FIRST_REDIS_DATABASE = 32


@dataclass
class LiveStack:
    """Talk to `api_url` with a key from `new_key`; stop, kill and start `processes` at will."""

    urls: DatabaseUrls
    redis_url: str
    processes: AppProcesses

    @classmethod
    def create(cls, cluster: Cluster, worker_number: int) -> "LiveStack":
        name = f"trellis_live_{worker_number}"
        asyncio.run(clone_database(cluster.admin_url, cluster.template, name))
        urls = database_urls(cluster.admin_url, name, cluster.passwords)
        redis_url = cluster.redis(FIRST_REDIS_DATABASE + worker_number)
        folder = Path(os.environ[RUN_FOLDER]) / f"live-{worker_number}"
        settings = {
            "TRELLIS_DATABASE_URL": urls.app,
            "TRELLIS_ENGINE_DATABASE_URL": urls.engine,
            "TRELLIS_OWNER_DATABASE_URL": urls.owner,
            "TRELLIS_REDIS_URL": redis_url,
            "TRELLIS_BLOB_URL": f"file://{folder}/blobs",
            "TRELLIS_DATABASE_POOL_SIZE": "5",
            "TRELLIS_ENGINE_POOL_SIZE": "4",
            # A test that kills a worker does not wait long for another to take over.
            "TRELLIS_LEASE_SECONDS": "3",
            "TRELLIS_SWEEP_INTERVAL_SECONDS": "1",
            "TRELLIS_REQUEUE_AFTER_SECONDS": "3",
            "TRELLIS_SHUTDOWN_GRACE_SECONDS": "5",
        }
        return cls(urls, redis_url, AppProcesses(folder, settings))

    @property
    def api_url(self) -> str:
        return self.processes.api_url

    def ensure_running(self) -> None:
        """Start what is missing of API, one worker and beat: an earlier test may have killed some."""
        processes = self.processes
        processes.children = [child for child in processes.children if not child.ended()]
        running = {child.name for child in processes.children}
        for name, start in (
            ("api", processes.start_api),
            ("worker", processes.start_worker),
            ("beat", processes.start_beat),
        ):
            if name not in running:
                start()
        processes.wait_until_ready()

    def child(self, name: str) -> Child:
        return next(child for child in self.processes.children if child.name == name and not child.ended())

    async def new_key(self, role: Role = Role.ADMIN) -> str:
        """The API key of a new tenant."""
        owner = Database(self.urls.owner, pool_size=1)
        try:
            tenants = TenantService(owner)
            tenant = await tenants.create_tenant(f"live {os.urandom(6).hex()}")
            return await tenants.create_key(tenant.id, name="test", role=role)
        finally:
            await owner.close()
