"""`trellis dev` as a user runs it: up, killed at its worst, up again with the same data and key, and down cleanly."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from app.devstack.postgres import free_port
from app.devstack.processes import MARK
from app.devstack.run_folders import close_run_folder
from tests.architecture.sources import ROOT
from tests.cluster import RUN_FOLDER

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]


@dataclass
class Dev:
    """A running `trellis dev` that has said where its API is."""

    process: "subprocess.Popen[str]"
    api_url: str
    api_key: str

    @classmethod
    def start(cls, folder: Path, port: int) -> "Dev":
        command = [sys.executable, "-m", "app.cli.main", "dev", "--data-dir", str(folder), "--port", str(port)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "Ctrl-C stops everything" in line:
                break
        url, key = re.search(r"API\s+(http\S+)", said), re.search(r"API key\s+(\S+)", said)
        assert url, said
        assert key, said
        return cls(process, url.group(1), key.group(1))

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.api_url + path, headers={"Authorization": f"Bearer {self.api_key}"})

    def post(self, path: str, body: object) -> httpx.Response:
        return httpx.post(self.api_url + path, headers={"Authorization": f"Bearer {self.api_key}"}, json=body)


@pytest.fixture
def folder(worker_number: int) -> Iterator[Path]:
    folder = Path(os.environ[RUN_FOLDER]) / f"dev-{worker_number}"
    yield folder
    close_run_folder(folder)


def processes_of(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(folder) or process.cwd().startswith(str(folder)):
                found.append(process.name())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_dev_survives_a_kill_and_stops_cleanly(folder: Path) -> None:
    port = free_port()
    first = Dev.start(folder, port)
    created = first.post("/v1/workspaces", {"name": "kept", "engines": ["lazy"]})
    assert created.status_code == 201, created.text
    assert [(folder / name).stat().st_mode & 0o777 for name in ("blobs", "logs")] == [0o700, 0o700]
    assert httpx.get(f"{first.api_url}/docs").status_code == 200

    first.process.send_signal(signal.SIGKILL)
    first.process.communicate()
    assert processes_of(folder), "the children of a killed supervisor go on; the next start has to end them"

    second = Dev.start(folder, port)
    assert second.api_key == first.api_key
    assert [row["name"] for row in second.get("/v1/workspaces").json()["items"]] == ["kept"]

    second.process.send_signal(signal.SIGINT)
    said, _ = second.process.communicate(timeout=60)
    assert second.process.returncode == 0, said
    assert "the data is kept" in said
    assert processes_of(folder) == []


def test_dev_ends_with_a_reason_when_a_child_dies(folder: Path) -> None:
    dev = Dev.start(folder, free_port())
    worker = next(process for process in psutil.Process(dev.process.pid).children() if "worker" in process.cmdline())
    worker.kill()
    said, _ = dev.process.communicate(timeout=60)
    assert dev.process.returncode == 1
    assert "worker ended with exit code" in said
    assert processes_of(folder) == []


def test_a_taken_port_is_named(folder: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        answer = subprocess.run(
            [sys.executable, "-m", "app.cli.main", "dev", "--data-dir", str(folder), "--port", str(port)],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    assert answer.returncode == 1
    assert f"port {port} is taken" in answer.stderr
