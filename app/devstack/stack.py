"""The whole product as child processes of this one: servers, schema, seed, API, worker and beat, in that order."""

import asyncio
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import SecretStr

from app.db.provision import DatabaseUrls, provision_database
from app.db.schema import upgrade_schema
from app.devstack.app_processes import AppProcesses
from app.devstack.folders import give_folder
from app.devstack.postgres import is_free
from app.devstack.processes import ProcessFailed
from app.devstack.seeding import seed
from app.devstack.servers import Servers

DATABASE = "trellis"
SETTINGS_FILE = "settings.sh"
# Everything that a data folder holds; emptying it removes these and nothing else.
CONTENTS = (
    "postgres",
    "redis",
    "blobs",
    "scratch",
    "work",
    "logs",
    "secrets.json",
    "ports.json",
    "api-key",
    SETTINGS_FILE,
)

Report = Callable[[str, float], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class RunningStack:
    """Where the stack can be reached."""

    api_url: str
    api_key: str

    @property
    def docs_url(self) -> str:
        return f"{self.api_url}/docs"


class Stack:
    """Starts, watches and stops everything. `report` is told each step and how many seconds it took."""

    def __init__(self, folder: Path, *, port: int = 0, report: Report) -> None:
        self.folder = folder
        self.port = port
        self.report = report
        self.servers: Servers | None = None
        self.processes: AppProcesses | None = None

    def start(self) -> RunningStack:
        """Start everything and wait until it serves; on any failure stop what was started and raise."""
        try:
            return self._start()
        except BaseException:
            self.stop()
            raise

    def check(self) -> None:
        """Raise ProcessFailed if a child ended by itself."""
        for part in (self.servers, self.processes):
            if part is not None:
                part.check()

    def stop(self) -> None:
        """Stop first what uses the servers."""
        for part in (self.processes, self.servers):
            if part is not None:
                part.stop()

    def _start(self) -> RunningStack:
        if self.port and not is_free(self.port):
            raise ProcessFailed(f"port {self.port} is taken by another program: choose one with --port")
        # What is private in here: the folder itself must let the account of Postgres through.
        for name in ("blobs", "logs"):
            give_folder(self.folder / name, None)
        self.servers = servers = Servers(self.folder)
        self._step("postgres and redis", servers.start)
        urls = self._step("database", lambda: asyncio.run(self._provision(servers)))
        self._step("migrations", lambda: upgrade_schema(urls.owner))
        api_key = self._step("models and tenant", lambda: self._seed(servers, urls))
        self.processes = processes = AppProcesses(self.folder, self._settings(servers, urls), port=self.port)
        processes.write_settings(self.folder / SETTINGS_FILE)
        self._step("API, worker and beat", lambda: self._start_processes(processes))
        return RunningStack(processes.api_url, api_key)

    def _step(self, name: str, action: Callable[[], Result]) -> Result:
        started = time.monotonic()
        result = action()
        self.report(name, time.monotonic() - started)
        return result

    async def _provision(self, servers: Servers) -> DatabaseUrls:
        return await provision_database(servers.postgres.url(), DATABASE, servers.secrets.roles)

    def _seed(self, servers: Servers, urls: DatabaseUrls) -> str:
        return seed(urls.owner, SecretStr(servers.secrets.secret_key), self.folder)

    def _settings(self, servers: Servers, urls: DatabaseUrls) -> dict[str, str]:
        return {
            "TRELLIS_ENVIRONMENT": "development",
            "TRELLIS_SECRET_KEY": servers.secrets.secret_key,
            "TRELLIS_DATABASE_URL": urls.app,
            "TRELLIS_ENGINE_DATABASE_URL": urls.engine,
            "TRELLIS_OWNER_DATABASE_URL": urls.owner,
            "TRELLIS_REDIS_URL": servers.redis.url(),
            "TRELLIS_BLOB_URL": f"file://{self.folder / 'blobs'}",
        }

    def _start_processes(self, processes: AppProcesses) -> None:
        processes.start_api()
        processes.start_worker()
        processes.start_beat()
        processes.wait_until_ready()


def empty_data_folder(folder: Path) -> None:
    """Remove what an earlier run kept, and nothing else that lies in `folder`."""
    for name in CONTENTS:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
