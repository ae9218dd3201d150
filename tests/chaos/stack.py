"""A whole installation of its own whose every part can be hurt: servers, API, beat, workers and the stub model."""

import asyncio
import os
import random
import signal
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import asyncpg
import httpx
import psutil
from pydantic import SecretStr
from redis.asyncio import Redis

from app.db.provision import DatabaseUrls, provision_database
from app.db.schema import upgrade_schema
from app.db.session import Database
from app.devstack.app_processes import AppProcesses
from app.devstack.folders import create_folder, give_folder
from app.devstack.processes import Child
from app.devstack.servers import Ports, Servers
from app.domain.models.service import ModelProfiles, NewProfile
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService
from app.settings import DEVELOPMENT_SECRET
from tests.fakes.stub_process import StubServer

DATABASE = "trellis_chaos"
CHAT, EMBEDDING = "stub-chat", "stub-embedding"
DIMENSION = 64
LEASE_SECONDS = 3
MODEL_TIMEOUT_SECONDS = 4
# Below the range that the kernel takes client ports from: a client that asks again and again for a server that is away
# would otherwise end up connected to itself, and the server could not come back.
PORTS = range(20_000, 32_000)

SHORT_TIMES = {
    "TRELLIS_LEASE_SECONDS": str(LEASE_SECONDS),
    "TRELLIS_SWEEP_INTERVAL_SECONDS": "1",
    "TRELLIS_REQUEUE_AFTER_SECONDS": "3",
    # Longer than what is written before its row may have to wait for the row.
    "TRELLIS_LEFTOVER_AGE_SECONDS": "30",
    "TRELLIS_LEFTOVER_INTERVAL_SECONDS": "3",
    "TRELLIS_WEBHOOK_ALLOW_PRIVATE": "true",
    "TRELLIS_WEBHOOK_INTERVAL_SECONDS": "1",
    "TRELLIS_WEBHOOK_TIMEOUT_SECONDS": "3",
    "TRELLIS_WEBHOOK_BACKOFF_SECONDS": "1",
    "TRELLIS_SHUTDOWN_GRACE_SECONDS": "2",
    "TRELLIS_DATABASE_POOL_SIZE": "6",
    "TRELLIS_ENGINE_POOL_SIZE": "4",
    "TRELLIS_WORKER_CONCURRENCY": "3",
}


@dataclass
class ChaosStack:
    """Its Postgres and Redis keep their ports over restarts; its processes are found by name in `processes.children`."""

    folder: Path
    servers: Servers
    urls: DatabaseUrls
    processes: AppProcesses
    stub: StubServer
    _workers_started: int = field(default=0)

    # --- processes ---

    def start_worker(self, *options: str, lease_seconds: int = LEASE_SECONDS) -> Child:
        self._workers_started += 1
        self.processes.environment["TRELLIS_LEASE_SECONDS"] = str(lease_seconds)
        try:
            return self.processes.start_worker(f"worker{self._workers_started}", options)
        finally:
            self.processes.environment["TRELLIS_LEASE_SECONDS"] = str(LEASE_SECONDS)

    def workers(self) -> list[Child]:
        return [child for child in self.processes.children if child.name.startswith("worker") and not child.ended()]

    def child(self, name: str) -> Child:
        return next(child for child in self.processes.children if child.name == name and not child.ended())

    def kill(self, child: Child) -> None:
        """SIGKILL to the process and nothing else, as the kernel's out-of-memory killer does."""
        os.kill(child.process.pid, signal.SIGKILL)
        child.process.wait()
        self.processes.children.remove(child)

    def freeze(self, child: Child) -> None:
        """SIGSTOP, and wait until the process stands."""
        os.kill(child.process.pid, signal.SIGSTOP)
        state = Path(f"/proc/{child.process.pid}/stat")
        while state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] != "T":
            time.sleep(0.01)

    def thaw(self, child: Child) -> None:
        os.kill(child.process.pid, signal.SIGCONT)

    def ensure_running(self) -> None:
        """Start what is missing of API and beat: an earlier test may have hurt them."""
        children = self.processes.children
        children[:] = [child for child in children if not child.ended()]
        running = {child.name for child in children}
        for name, start in (("api", self.processes.start_api), ("beat", self.processes.start_beat)):
            if name not in running:
                start()

    def wait_for_api(self) -> None:
        """Until it is ready; raises ProcessFailed if a process ended by itself."""
        while True:
            self.processes.check()
            try:
                if httpx.get(f"{self.processes.api_url}/readyz", timeout=5).is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.1)

    def remove_workers(self) -> None:
        for child in self.workers():
            self.kill(child)

    def log(self, prefix: str = "worker") -> str:
        """What processes of that name have written, those that are dead included."""
        files = sorted((self.processes.folder / "logs").glob(f"{prefix}*.log"))
        return "\n".join(file.read_text(errors="replace") for file in files)

    # --- servers ---

    def stop_postgres(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Cut off all clients and end; "immediate" leaves recovery to the next start."""
        child = self.servers.children[0]
        child.process.send_signal(signal.SIGINT if mode == "fast" else signal.SIGQUIT)
        child.process.wait()

    def start_postgres(self) -> None:
        port = self.servers.postgres.port
        self.servers.children[0] = self.servers.postgres.start(port)
        assert self.servers.postgres.port == port

    def stop_redis(self) -> None:
        child = self.servers.children[1]
        child.process.kill()
        child.process.wait()

    def start_redis(self) -> None:
        port = self.servers.redis.port
        self.servers.children[1] = self.servers.redis.start(port)
        assert self.servers.redis.port == port

    def freeze_server(self, name: Literal["postgres", "redis"]) -> None:
        """SIGSTOP to the server with all its processes, as a partitioned network looks to its clients."""
        self._signal_server(name, signal.SIGSTOP)

    def thaw_server(self, name: Literal["postgres", "redis"]) -> None:
        self._signal_server(name, signal.SIGCONT)

    def _signal_server(self, name: str, number: signal.Signals) -> None:
        parent = psutil.Process(next(child for child in self.servers.children if child.name == name).process.pid)
        parent.send_signal(number)
        # Listed once the parent makes no more of them.
        for process in parent.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    async def flush_redis(self) -> None:
        async with Redis.from_url(self.servers.redis.url()) as client:
            await client.flushall()

    async def cut_connections(self) -> int:
        """End every connection of the product's roles; the count of those ended."""
        return int(
            await self.scalar(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )

    # --- database, past all policies ---

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(self.servers.postgres.url(DATABASE))
        try:
            yield connection
        finally:
            await connection.close()

    async def fetch(self, query: str, *arguments: Any) -> list[asyncpg.Record]:
        async with self.connection() as connection:
            return list(await connection.fetch(query, *arguments))

    async def scalar(self, query: str, *arguments: Any) -> Any:
        async with self.connection() as connection:
            return await connection.fetchval(query, *arguments)

    async def new_key(self, tenant: str) -> str:
        """The API key of a new tenant of that name."""
        owner = Database(self.urls.owner, pool_size=1)
        try:
            tenants = TenantService(owner)
            made = await tenants.create_tenant(tenant)
            return await tenants.create_key(made.id, name="chaos", role=Role.ADMIN)
        finally:
            await owner.close()

    def stop(self) -> None:
        for child in self.processes.children:
            if not child.ended():
                self.thaw(child)
        self.processes.stop()
        self.servers.stop()


async def create_stack(
    folder: Path, stub: StubServer, settings: Mapping[str, str] | None = None, **chat: Any
) -> ChaosStack:
    """Servers with a migrated database and the stub registered as both models; no process of ours runs yet.

    `chat` overrides fields of the chat model's profile.
    """
    create_folder(folder)
    for name in ("blobs", "logs", "tmp"):
        give_folder(folder / name, None)
    # An acknowledged commit has to survive a crash of the server here, which is not one of the machine.
    servers = Servers(folder, for_tests=True, settings={"synchronous_commit": "on"})
    (folder / "ports.json").write_text(f'{{"postgres": {_free_port()}, "redis": {_free_port()}}}')
    assert servers.load_ports() != Ports()
    await asyncio.to_thread(servers.start)
    try:
        urls = await provision_database(servers.postgres.url(), DATABASE, servers.secrets.roles)
        await asyncio.to_thread(upgrade_schema, urls.owner)
        await _register_models(urls, stub, chat)
    except BaseException:
        servers.stop()
        raise
    environment = {
        "TRELLIS_DATABASE_URL": urls.app,
        "TRELLIS_ENGINE_DATABASE_URL": urls.engine,
        "TRELLIS_REDIS_URL": servers.redis.url(),
        "TRELLIS_BLOB_URL": f"file://{folder}/blobs",
        "TRELLIS_DEFAULT_CHAT_MODEL": CHAT,
        "TRELLIS_DEFAULT_EMBEDDING_MODEL": EMBEDDING,
        "TMPDIR": str(folder / "tmp"),
        **SHORT_TIMES,
        **(settings or {}),
    }
    return ChaosStack(folder, servers, urls, AppProcesses(folder, environment, port=_free_port()), stub)


async def _register_models(urls: DatabaseUrls, stub: StubServer, chat: dict[str, Any]) -> None:
    owner = Database(urls.owner, pool_size=1)
    try:
        profiles = ModelProfiles(owner, SecretStr(DEVELOPMENT_SECRET))
        shared: dict[str, Any] = {
            "provider": "openai",
            "model": "stub",
            "base_url": stub.base_url,
            "api_key": SecretStr("test"),
            "timeout_seconds": MODEL_TIMEOUT_SECONDS,
            "max_retries": 2,
        }
        await profiles.register(NewProfile(name=CHAT, role="chat", **{**shared, **chat}))
        await profiles.register(NewProfile(name=EMBEDDING, role="embedding", dimension=DIMENSION, **shared))
    finally:
        await owner.close()


def _free_port() -> int:
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free")
