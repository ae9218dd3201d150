"""The two asking processes and how to talk to them: started beside a running Trellis, on its database."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.devstack.folders import create_folder
from app.devstack.processes import ProcessFailed, log_tail
from bench.sidebyside.asker import Ask
from bench.sidebyside.corpus import PROJECT
from bench.sidebyside.product import DATABASE, EMBEDDING_MODEL, Product


@dataclass(frozen=True)
class Place:
    """The workspace that is asked."""

    tenant: str
    workspace: str

    @property
    def engine_name(self) -> str:
        return f"w_{self.workspace.replace('-', '')}"


class AskerProcess:
    """A process of `bench.sidebyside.asker`."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self._process = process
        self._log = log

    def round(self, mode: str, asks: Sequence[Ask], clients: int, *, is_whole: bool = False) -> dict[str, Any]:
        """Ask all, `clients` at a time; see `run_round`."""
        round_ = {"mode": mode, "clients": clients, "is_whole": is_whole, "asks": [asdict(ask) for ask in asks]}
        return self._exchange(round_)

    def open(self, job: dict[str, str]) -> None:
        self._exchange(job)

    def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the asking process was started without pipes")
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            # LightRAG greets on the standard output too.
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise ProcessFailed(f"the asking process ended with code {self._process.wait()}:\n{log_tail(self._log)}")


@contextmanager
def open_askers(product: Product, place: Place, folder: Path) -> Iterator[dict[str, AskerProcess]]:
    """`stock` and `trellis`, both ready; they end with the block."""
    if product.processes is None:
        raise RuntimeError("the product has not been started")
    job = {
        "model_url": product.model_url,
        "engine_workspace": place.engine_name,
        "embedding_model": EMBEDDING_MODEL,
        "tenant": place.tenant,
        "workspace": place.workspace,
    }
    environments = {"stock": _stock_environment(product), "trellis": product.processes.environment}
    processes: list[subprocess.Popen[str]] = []
    try:
        askers = {}
        for kind, environment in environments.items():
            work = folder / kind
            create_folder(work)
            process = _start(kind, environment, work)
            processes.append(process)
            askers[kind] = AskerProcess(process, work / "log")
            askers[kind].open(job | {"folder": str(work)})
        yield askers
    finally:
        for process in processes:
            process.terminate()
            process.wait(timeout=30)


def _stock_environment(product: Product) -> dict[str, str]:
    """As LightRAG's own server would have it, with rights to see through the row level security of our tables."""
    postgres = product.servers.postgres
    return {
        "PATH": os.defpath,
        "HOME": str(product.folder),
        "POSTGRES_HOST": "127.0.0.1",
        "POSTGRES_PORT": str(postgres.port),
        "POSTGRES_USER": "postgres",
        "POSTGRES_PASSWORD": postgres.password,
        "POSTGRES_DATABASE": DATABASE,
        "POSTGRES_MAX_CONNECTIONS": "20",
        # The tables are the product's, and so are their indexes.
        "POSTGRES_VECTOR_INDEX_TYPE": "",
        "POSTGRES_SERVER_SETTINGS": "hnsw.iterative_scan=strict_order&hnsw.ef_search=100",
    }


def _start(kind: str, environment: dict[str, str], work: Path) -> "subprocess.Popen[str]":
    with (work / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "bench.sidebyside.asker", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=work,
            env=environment | {"PYTHONPATH": str(PROJECT)},
        )
