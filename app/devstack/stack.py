"""The whole product as child processes of this one: servers, schema, seed, API, worker and beat, in that order."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import httpx
from celery import Celery

from app.db.provision import DatabaseUrls, provision_database
from app.db.schema import upgrade_schema
from app.devstack.folders import create_folder
from app.devstack.postgres import free_port, is_free
from app.devstack.processes import MARK, Child, ProcessFailed, log_tail, start_child, stop_leftovers
from app.devstack.seeding import seed
from app.devstack.servers import Servers

CODE = Path(__file__).resolve().parents[2]
DATABASE = "trellis"
START_SECONDS = 90
POLL_SECONDS = 0.2
# Everything that a data folder holds; `--fresh` removes these and nothing else.
CONTENTS = ("postgres", "redis", "blobs", "scratch", "work", "logs", "secrets.json", "ports.json", "api-key")

Report = Callable[[str, float], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class RunningStack:
    """Where the stack can be reached."""

    api_url: str
    api_key: str
    environment: Mapping[str, str]

    @property
    def docs_url(self) -> str:
        return f"{self.api_url}/docs"


def empty_data_folder(folder: Path) -> None:
    """Remove what an earlier run kept, and nothing else that lies in `folder`."""
    for name in CONTENTS:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class Stack:
    """Starts, watches and stops everything. `report` is told each step and how many seconds it took."""

    def __init__(self, folder: Path, *, port: int = 0, report: Report) -> None:
        self.folder = folder
        self.port = port
        self.report = report
        self.servers: Servers | None = None
        self.children: list[Child] = []

    def start(self) -> RunningStack:
        """Start everything and wait until it serves; on any failure stop what was started and raise."""
        try:
            return self._start()
        except BaseException:
            self.stop()
            raise

    def check(self) -> None:
        """Raise ProcessFailed if a child ended by itself."""
        for child in (*self.children, *(self.servers.children if self.servers else ())):
            if child.ended():
                raise child.failure()

    def stop(self) -> None:
        """Stop the processes that use the servers, all at once, and then the servers."""
        for child in reversed(self.children):
            child.ask_to_stop()
        while self.children:
            self.children.pop().stop()
        if self.servers is not None:
            self.servers.stop()

    def _start(self) -> RunningStack:
        if self.port and not is_free(self.port):
            raise ProcessFailed(f"port {self.port} is taken by another program: choose one with --port")
        self._step("leftovers of a killed run ended", lambda: stop_leftovers(self.folder), quiet_if_zero=True)
        self.servers = servers = Servers(self.folder)
        self._step("postgres and redis", servers.start)
        urls = self._step("database", lambda: asyncio.run(self._provision(servers)))
        self._step("migrations", lambda: upgrade_schema(urls.owner))
        environment = self._environment(servers, urls)
        api_key = self._step("models, tenant and API key", lambda: seed(urls.owner, self.folder))
        self._step("API, worker and beat", lambda: self._start_processes(environment))
        return RunningStack(self._api_url, api_key, environment)

    def _step(self, name: str, action: Callable[[], Result], *, quiet_if_zero: bool = False) -> Result:
        started = time.monotonic()
        result = action()
        if not quiet_if_zero or result:
            self.report(name, time.monotonic() - started)
        return result

    @property
    def _api_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _provision(self, servers: Servers) -> DatabaseUrls:
        return await provision_database(servers.postgres.url(), DATABASE, servers.secrets.roles)

    def _environment(self, servers: Servers, urls: DatabaseUrls) -> dict[str, str]:
        for name in ("blobs", "scratch", "work"):
            create_folder(self.folder / name)
        return {
            **os.environ,
            "TRELLIS_ENVIRONMENT": "development",
            "TRELLIS_SECRET_KEY": servers.secrets.secret_key,
            "TRELLIS_DATABASE_URL": urls.app,
            "TRELLIS_ENGINE_DATABASE_URL": urls.engine,
            "TRELLIS_OWNER_DATABASE_URL": urls.owner,
            "TRELLIS_REDIS_URL": servers.redis.url(),
            "TRELLIS_BLOB_URL": f"file://{self.folder / 'blobs'}",
            "TRELLIS_SCRATCH_DIR": str(self.folder / "scratch"),
            # The children work in an empty folder, for the graph engine reads settings files from where it stands.
            "PYTHONPATH": str(CODE),
            "PYTHONUNBUFFERED": "1",
            MARK: str(self.folder),
        }

    def _start_processes(self, environment: Mapping[str, str]) -> None:
        self.port = self.port or free_port()
        commands = {
            "api": ["uvicorn", "app.main:create_app", "--factory", "--host", "127.0.0.1", "--port", str(self.port)],
            "worker": ["celery", "-A", "workers.celery_app", "worker", "--loglevel", "INFO"],
            "beat": [
                "celery", "-A", "workers.celery_app", "beat", "--loglevel", "INFO", "--pidfile", "",
                "--schedule", str(self.folder / "work" / "beat-schedule"),
            ],
        }  # fmt: skip
        for name, command in commands.items():
            log = self.folder / "logs" / f"{name}.log"
            self.children.append(
                start_child(
                    name,
                    [sys.executable, "-m", *command],
                    log=log,
                    environment=environment,
                    folder=self.folder / "work",
                )
            )
        self._wait_for("the API", self._api_answers)
        broker = Celery("probe", broker=environment["TRELLIS_REDIS_URL"], set_as_current=False)
        self._wait_for("the worker", lambda: bool(broker.control.ping(timeout=0.5)))
        broker.close()

    def _wait_for(self, name: str, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready():
            self.check()
            if time.monotonic() > deadline:
                logs = "\n".join(f"{child.log}:\n{log_tail(child.log, 8)}" for child in self.children)
                raise ProcessFailed(f"{name} was not ready in {START_SECONDS} s\n{logs}")
            time.sleep(POLL_SECONDS)

    def _api_answers(self) -> bool:
        try:
            return httpx.get(f"{self._api_url}/openapi.json", timeout=2).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False
