"""Starts the stub model server as a process of its own, and the fixtures that hand it to tests."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[2]
START_SECONDS = 30


@dataclass(frozen=True)
class StubServer:
    """A running stub: `url` is its base without `/v1`."""

    url: str

    @property
    def base_url(self) -> str:
        """What a model profile takes as `base_url`."""
        return f"{self.url}/v1"

    def stats(self) -> dict[str, Any]:
        answer: dict[str, Any] = httpx.get(f"{self.url}/stats").raise_for_status().json()
        return answer

    def set_faults(self, *faults: dict[str, Any]) -> None:
        httpx.post(f"{self.url}/faults", json=list(faults)).raise_for_status()

    def clear_faults(self, name: str) -> None:
        """Take back the failures that were set with this `name`."""
        httpx.delete(f"{self.url}/faults", params={"name": name}).raise_for_status()

    def reset(self) -> None:
        """Forget counts and failures."""
        httpx.post(f"{self.url}/reset").raise_for_status()
        httpx.delete(f"{self.url}/faults").raise_for_status()


@contextmanager
def run_stub(*arguments: str) -> Iterator[StubServer]:
    """A stub with command line arguments of its own, stopped at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tests.fakes.stub_llm", "--port", str(port), *arguments]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        server = StubServer(f"http://127.0.0.1:{port}")
        _wait_until_up(server, process)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=10)


def _wait_until_up(server: StubServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            server.stats()
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the stub model server did not start (exit code {process.poll()})")


@pytest.fixture(scope="session")
def stub_server() -> Iterator[StubServer]:
    """One stub for the whole run, without a key and without delays; `stub_llm` clears it for each test."""
    with run_stub() as server:
        yield server


@pytest.fixture
def stub_llm(stub_server: StubServer) -> Iterator[StubServer]:
    """The stub, with its counts and failures cleared before and after the test."""
    stub_server.reset()
    yield stub_server
    stub_server.reset()
