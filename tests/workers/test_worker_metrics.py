"""A worker tells what it has counted, whichever pool it has, where it is given a port."""

import socket
from pathlib import Path

import httpx
import pytest

from app.settings import Settings
from tests.workers.fleet import open_fleet
from tests.workers.uploads import until
from workers.schedule import SWEEP, SWEEP_QUEUE

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(120)]

SWEPT = 'trellis_upkeep_runs_total{outcome="done",task="upkeep.sweep"} 1.0'


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def told(port: int) -> str:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    except httpx.ConnectError:
        return ""


@pytest.mark.parametrize("pool", ["threads", "processes"])
async def test_a_sweep_is_counted(settings: Settings, tmp_path: Path, pool: str) -> None:
    port = free_port()
    async with open_fleet(settings, tmp_path, worker_metrics_port=str(port)) as fleet:
        if pool == "processes":
            (tmp_path / "shared").mkdir()
            fleet.processes.environment["PROMETHEUS_MULTIPROC_DIR"] = str(tmp_path / "shared")
        fleet.start_worker("--pool", pool, "--concurrency", "1")
        await fleet.send_task(SWEEP, queue=SWEEP_QUEUE)
        await until(lambda: SWEPT in told(port))
        assert 'trellis_sweep_found_total{kind="queued_lazy"}' in told(port)


async def test_processes_without_a_shared_folder_does_not_start(settings: Settings, tmp_path: Path) -> None:
    async with open_fleet(settings, tmp_path, worker_metrics_port=str(free_port())) as fleet:
        child = fleet.start_worker("--pool", "processes", "--concurrency", "1")
        assert child.process.wait(60) != 0
        assert "needs PROMETHEUS_MULTIPROC_DIR" in fleet.log()


async def test_a_port_that_is_taken_stops_the_worker(settings: Settings, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        async with open_fleet(settings, tmp_path, worker_metrics_port=str(other.getsockname()[1])) as fleet:
            assert fleet.start_worker().process.wait(60) != 0
            assert "TRELLIS_WORKER_METRICS_PORT cannot be listened to" in fleet.log()
