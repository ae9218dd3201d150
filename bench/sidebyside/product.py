"""A whole Trellis with the stub model: its own servers, the API and workers as processes, driven over HTTP."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from celery import Celery
from pydantic import SecretStr

from app.db.provision import DatabaseUrls, provision_database
from app.db.schema import upgrade_schema
from app.db.session import Database
from app.devstack.app_processes import AppProcesses
from app.devstack.processes import Child, ProcessFailed
from app.devstack.servers import Servers
from app.domain.models.service import ModelProfiles, NewProfile
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService
from bench.sidebyside.corpus import Document
from bench.sidebyside.model import CALLS_AT_ONCE, DIMENSION
from bench.sidebyside.rows import RowFailed
from bench.sidebyside.statements import StatementCounter

DATABASE = "trellis"
CHAT_MODEL, EMBEDDING_MODEL = "stub-chat", "stub-embedding"
START_SECONDS = 90
# Each question is work for the system that is measured.
POLL_SECONDS = 2.0
# As many as the peer works on at once.
DOCUMENTS_AT_ONCE = 8


class Product:
    """One installation with `workers` worker processes. Use as a context manager."""

    def __init__(self, folder: Path, model_url: str, *, workers: int = 1) -> None:
        self.folder = folder
        self.model_url = model_url
        self.servers = Servers(folder)
        self.urls: DatabaseUrls | None = None
        self.processes: AppProcesses | None = None
        self.api: Child | None = None
        self.workers: list[Child] = []
        self.http = httpx.Client(timeout=300)
        self.workspaces: list[str] = []
        self._worker_count = workers

    def __enter__(self) -> "Product":
        StatementCounter.preload(self.servers.postgres)
        try:
            self.servers.start()
            self.urls = asyncio.run(
                provision_database(self.servers.postgres.url(), DATABASE, self.servers.secrets.roles)
            )
            upgrade_schema(self.urls.owner)
            key = asyncio.run(self._seed(self.urls.owner))
            self.processes = AppProcesses(self.folder, self.settings(self.urls))
            self.http.headers["Authorization"] = f"Bearer {key}"
            self.http.base_url = httpx.URL(f"{self.processes.api_url}/v1")
            self._start_processes(self.processes)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        if self.processes is not None:
            self.processes.stop()
        self.servers.stop()

    def settings(self, urls: DatabaseUrls) -> dict[str, str]:
        return {
            "TRELLIS_ENVIRONMENT": "development",
            "TRELLIS_SECRET_KEY": self.servers.secrets.secret_key,
            "TRELLIS_LOG_LEVEL": "WARNING",
            "TRELLIS_DATABASE_URL": urls.app,
            "TRELLIS_ENGINE_DATABASE_URL": urls.engine,
            "TRELLIS_OWNER_DATABASE_URL": urls.owner,
            "TRELLIS_REDIS_URL": self.servers.redis.url(),
            "TRELLIS_BLOB_URL": f"file://{self.folder / 'blobs'}",
            "TRELLIS_WORKER_CONCURRENCY": str(DOCUMENTS_AT_ONCE),
        }

    @property
    def postgres_id(self) -> int:
        return self.servers.children[0].process.pid

    @property
    def worker_ids(self) -> list[int]:
        return [worker.process.pid for worker in self.workers]

    @property
    def api_id(self) -> int:
        if self.api is None:
            raise RuntimeError("the API has not been started")
        return self.api.process.pid

    def add_workspaces(self, count: int) -> None:
        """Make new workspaces; documents go to them in turn from now on."""
        self.workspaces = [self._add_workspace(f"bench {number}") for number in range(count)]

    def ingest(self, documents: Sequence[Document]) -> None:
        """Upload in one request a workspace and wait until all documents are ready. Raises RowFailed."""
        before = {workspace: self._count(workspace, "ready") for workspace in self.workspaces}
        shares = {
            workspace: documents[number :: len(self.workspaces)] for number, workspace in enumerate(self.workspaces)
        }
        for workspace, share in shares.items():
            if share:
                parts = [("files", (each.name, each.text.encode(), "text/plain")) for each in share]
                self._require(self.http.post(f"/workspaces/{workspace}/documents", files=parts), 202)
        for workspace, share in shares.items():
            while self._page(workspace, "processing", 1):
                for child in (*self.workers, *([self.api] if self.api else [])):
                    if child.ended():
                        raise child.failure()
                time.sleep(POLL_SECONDS)
            ready = self._count(workspace, "ready") - before[workspace]
            if ready != len(share):
                raise RowFailed(f"{len(share) - ready} of {len(share)} documents are not ready: {self._why(workspace)}")

    def query(self, workspace: str, body: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._require(self.http.post(f"/workspaces/{workspace}/query", json=body), 200)
        return answer

    def _add_workspace(self, name: str) -> str:
        body = {
            "name": f"{name} {time.monotonic_ns()}",
            "engines": ["lazy", "graph"],
            "chat_model": CHAT_MODEL,
            "embedding_model": EMBEDDING_MODEL,
        }
        return str(self._require(self.http.post("/workspaces", json=body), 201)["id"])

    def _count(self, workspace: str, status: str) -> int:
        return len(self._page(workspace, status, 10_000))

    def _page(self, workspace: str, status: str, limit: int) -> list[dict[str, Any]]:
        path = f"/workspaces/{workspace}/documents"
        found: list[dict[str, Any]] = []
        parameters: dict[str, str | int] = {"status": status, "limit": min(limit, 200)}
        while True:
            page = self._require(self.http.get(path, params=parameters), 200)
            found += page["items"]
            if not page["next_cursor"] or len(found) >= limit:
                return found
            parameters["cursor"] = page["next_cursor"]

    def _why(self, workspace: str) -> str:
        rows = self._page(workspace, "failed", 1) or self._page(workspace, "partial", 1)
        return str([engine.get("error") for row in rows for engine in row["engines"].values()])

    def _require(self, response: httpx.Response, status: int) -> Any:
        if response.status_code != status:
            raise RowFailed(f"{response.request.url} answered {response.status_code}: {response.text[:500]}")
        return response.json()

    async def _seed(self, owner_url: str) -> str:
        database = Database(owner_url, pool_size=1)
        try:
            models = ModelProfiles(database, SecretStr(self.servers.secrets.secret_key))
            common: dict[str, Any] = {
                "provider": "openai", "model": "stub", "base_url": self.model_url, "max_concurrency": CALLS_AT_ONCE,
            }  # fmt: skip
            await models.register(NewProfile(name=CHAT_MODEL, role="chat", **common))
            await models.register(NewProfile(name=EMBEDDING_MODEL, role="embedding", dimension=DIMENSION, **common))
            tenants = TenantService(database)
            tenant = await tenants.create_tenant("bench")
            return await tenants.create_key(tenant.id, name="bench", role=Role.ADMIN)
        finally:
            await database.close()

    def _start_processes(self, processes: AppProcesses) -> None:
        self.api = processes.start_api()
        self.workers = [processes.start_worker(f"worker{number}") for number in range(self._worker_count)]
        processes.start_beat()
        processes.wait_until_ready()
        broker = Celery("probe", broker=self.servers.redis.url(), set_as_current=False)
        try:
            deadline = time.monotonic() + START_SECONDS
            while len(broker.control.ping(timeout=1) or ()) < self._worker_count:
                if time.monotonic() > deadline:
                    raise ProcessFailed(f"not all workers listened after {START_SECONDS} s")
        finally:
            broker.close()
