"""API, worker and beat as child processes, on whatever servers their environment names."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx
from celery import Celery

from app.devstack.folders import create_folder
from app.devstack.postgres import free_port
from app.devstack.processes import MARK, Child, ProcessFailed, log_tail, start_child

CODE = Path(__file__).resolve().parents[2]
START_SECONDS = 90
POLL_SECONDS = 0.2
# Longer than clients and load balancers keep a connection that is idle: who ends it first must not be the server, or a
# request that is on its way then is lost.
KEEP_ALIVE_SECONDS = 75
CELERY = ("celery", "-A", "workers.celery_app")


class AppProcesses:
    """The processes of one installation. They log to `folder / "logs"` and work in an empty folder of their own.

    `through` is what each is started through, such as `ip netns exec` with the name of a network.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, str], *, port: int = 0, through: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self._through = through
        self.ports = [port or free_port()]
        self.children: list[Child] = []
        for name in ("work", "scratch"):
            create_folder(folder / name)
        self.environment = {
            **os.environ,
            "TRELLIS_SCRATCH_DIR": str(folder / "scratch"),
            **settings,
            # They stand in an empty folder, for the graph engine reads settings files from where it stands.
            "PYTHONPATH": str(CODE),
            "PYTHONUNBUFFERED": "1",
            MARK: str(folder),
        }

    @property
    def api_url(self) -> str:
        return self.api_urls[0]

    @property
    def api_urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    def write_settings(self, file: Path) -> None:
        """Write what these processes are started with as a shell script, for commands that act on the same stack."""
        lines = [
            f"export {name}={shlex.quote(value)}"
            for name, value in sorted(self.environment.items())
            if name.startswith("TRELLIS_") and name != MARK
        ]
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as output:
            output.write("\n".join(lines) + "\n")

    def start_api(self, number: int = 0) -> Child:
        """The first one, or one of several that answer side by side, each on a port of its own that it keeps."""
        while len(self.ports) <= number:
            self.ports.append(free_port())
        command = [
            "uvicorn",
            "app.main:create_app",
            "--factory",
            "--no-proxy-headers",
            # The other parser takes headers of any size.
            "--http",
            "h11",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.ports[number]),
            "--timeout-keep-alive",
            str(KEEP_ALIVE_SECONDS),
        ]
        return self._start(f"api{number or ''}", command)

    def start_worker(self, name: str = "worker", options: Sequence[str] = ()) -> Child:
        """Names tell several workers apart, in the log folder and to the broker."""
        command = [*CELERY, "worker", "--hostname", f"{name}@localhost", *options]
        return self._start(name, command)

    def start_beat(self) -> Child:
        return self._start("beat", [*CELERY, "beat"])

    def wait_until_ready(self) -> None:
        """Until the API answers and a worker listens; raises ProcessFailed with the logs if they do not."""
        self._wait_for("the API", self._api_answers)
        broker = Celery("probe", broker=self.environment["TRELLIS_REDIS_URL"], set_as_current=False)
        try:
            self._wait_for("the worker", lambda: bool(broker.control.ping(timeout=0.5)))
        finally:
            broker.close()

    def check(self) -> None:
        """Raise ProcessFailed if one of them ended by itself."""
        for child in self.children:
            if child.ended():
                raise child.failure()

    def stop(self) -> None:
        """Ask all to end before waiting for the first."""
        for child in self.children:
            child.ask_to_stop()
        while self.children:
            self.children.pop().stop()

    def _start(self, name: str, command: Sequence[str]) -> Child:
        child = start_child(
            name,
            [*self._through, sys.executable, "-m", *command],
            log=self.folder / "logs" / f"{name}.log",
            environment=self.environment,
            folder=self.folder / "work",
        )
        self.children.append(child)
        return child

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
            return all(httpx.get(f"{url}/readyz", timeout=2).status_code == httpx.codes.OK for url in self.api_urls)
        except httpx.TransportError:
            return False
