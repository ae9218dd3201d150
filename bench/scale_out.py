"""Several hosts against one Postgres and one Redis: what is lost when one dies, and what more extract workers bring.

    python -m bench.scale_out [--documents 24] [--workers 1,2,4] [--llm-ms 300]

A host is a group of processes with a temporary and a working folder of its own: an API, a worker and beat, which share with the
other host what hosts share (database, broker, store of originals) and nothing else.

1. Two hosts get documents in turns. One is killed (every process at once) when some are ready. All have to be ready over the other
   one, and after the first is back both have to answer a question alike.
2. The same documents are extracted by 1, 2 and 4 workers of one call at a time, against a stub model that takes so many milliseconds.
   Where a machine has CPU left the rate grows with the workers; the share of the CPU in use is printed beside it.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
from pydantic import SecretStr

from app.db.provision import DatabaseUrls, provision_database
from app.db.schema import upgrade_schema
from app.db.session import Database
from app.devstack.app_processes import AppProcesses
from app.devstack.folders import create_folder
from app.devstack.run_folders import close_run_folder, open_run_folder
from app.devstack.servers import Servers
from app.domain.models.offline import register_offline_models
from app.domain.models.service import ModelProfiles, NewProfile
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService
from bench import capacity
from tests.fakes.stub_process import StubServer, run_stub

CHAT = "stub-chat"
QUESTION = "Who met Marie Lindqvist in Lindau?"
# About eight chunks each, of different texts: equal ones would be found in the cache of answers.
SENTENCE = "Marie Lindqvist {n} met Helena Petrowa {m} in Lindau on day {n} and repaired press {m} of the seal works. "
SENTENCES = 120


@dataclass
class Shared:
    """What all hosts reach."""

    folder: Path
    servers: Servers
    urls: DatabaseUrls
    key: str
    _hosts: list[AppProcesses] = field(default_factory=list)

    def host(self, name: str, **settings: str) -> AppProcesses:
        """No process of it runs yet."""
        folder = self.folder / name
        create_folder(folder / "tmp")
        common = {
            "TRELLIS_SECRET_KEY": self.servers.secrets.secret_key,
            "TRELLIS_LOG_LEVEL": "WARNING",
            "TRELLIS_DATABASE_URL": self.urls.app,
            "TRELLIS_ENGINE_DATABASE_URL": self.urls.engine,
            "TRELLIS_REDIS_URL": self.servers.redis.url(),
            "TRELLIS_BLOB_URL": f"file://{self.folder / 'blobs'}",
            "TRELLIS_LEASE_SECONDS": "5",
            "TRELLIS_SWEEP_INTERVAL_SECONDS": "2",
            "TRELLIS_REQUEUE_AFTER_SECONDS": "5",
            "TMPDIR": str(folder / "tmp"),
        }
        host = AppProcesses(folder, common | settings)
        self._hosts.append(host)
        return host

    def client(self, host: AppProcesses) -> httpx.Client:
        return httpx.Client(
            base_url=f"{host.api_url}/v1", headers={"Authorization": f"Bearer {self.key}"}, timeout=120, trust_env=False
        )

    def stop(self) -> None:
        for host in self._hosts:
            host.stop()


@contextmanager
def shared(stub: StubServer) -> Iterator[Shared]:
    folder = open_run_folder("scale-out")
    servers = Servers(folder)
    found: Shared | None = None
    try:
        servers.start()
        urls = asyncio.run(provision_database(servers.postgres.url(), "trellis", servers.secrets.roles))
        upgrade_schema(urls.owner)
        found = Shared(folder, servers, urls, asyncio.run(_seed(urls.owner, servers.secrets.secret_key, stub)))
        yield found
    finally:
        if found is not None:
            found.stop()
        servers.stop()
        close_run_folder(folder)


async def _seed(owner_url: str, secret_key: str, stub: StubServer) -> str:
    database = Database(owner_url, pool_size=1)
    try:
        profiles = ModelProfiles(database, SecretStr(secret_key))
        await register_offline_models(profiles)
        await profiles.register(
            NewProfile(
                name=CHAT,
                role="chat",
                provider="openai",
                model="stub",
                base_url=stub.base_url,
                api_key=SecretStr("none"),
                max_concurrency=64,
            )
        )
        tenants = TenantService(database)
        tenant = await tenants.create_tenant("scale")
        return await tenants.create_key(tenant.id, name="bench", role=Role.ADMIN)
    finally:
        await database.close()


def add_workspace(client: httpx.Client, name: str) -> str:
    body = {"name": name, "engines": ["lazy", "graph"], "chat_model": CHAT}
    return str(client.post("/workspaces", json=body).raise_for_status().json()["id"])


def upload(client: httpx.Client, workspace: str, number: int) -> str:
    text = "".join(SENTENCE.format(n=number * 1000 + n, m=number * 1000 + n * 7) for n in range(SENTENCES))
    body = {"title": f"Report {number}", "text": text}
    answer = client.post(f"/workspaces/{workspace}/documents", json=body).raise_for_status().json()
    return str(answer["documents"][0]["id"])


def statuses(client: httpx.Client, workspace: str, documents: Sequence[str]) -> list[str]:
    return [
        str(client.get(f"/workspaces/{workspace}/documents/{each}").raise_for_status().json()["status"])
        for each in documents
    ]


def answer_of(client: httpx.Client, workspace: str, mode: str) -> str:
    asked = (
        client.post(f"/workspaces/{workspace}/query", json={"query": QUESTION, "mode": mode}).raise_for_status().json()
    )
    return str(asked["context"])


def kill_host(host: AppProcesses) -> None:
    """As a power cut does: every process with its children, none of which can say goodbye."""
    for child in host.children:
        tree = [*psutil.Process(child.process.pid).children(recursive=True), psutil.Process(child.process.pid)]
        for process in tree:
            process.kill()
        child.process.wait()
    host.children.clear()


def start_host(host: AppProcesses, name: str) -> None:
    host.start_api()
    host.start_worker(f"worker-{name}")
    host.start_beat()
    host.wait_until_ready()


def lose_a_host(run: Shared, documents: int) -> None:
    first, second = run.host("host1"), run.host("host2")
    start_host(first, "host1")
    start_host(second, "host2")
    with run.client(first) as one, run.client(second) as two:
        workspace = add_workspace(one, "hosts")
        ids = [
            upload(client, workspace, number)
            for number, client in zip(range(documents), [one, two] * documents, strict=False)
        ]
        while statuses(two, workspace, ids).count("ready") < documents // 4:
            time.sleep(0.5)
        kill_host(first)
        before = statuses(two, workspace, ids)
        print(f"host1 killed with {before.count('ready')} of {documents} ready")
        started = time.perf_counter()
        while "processing" in (found := statuses(two, workspace, ids)):
            time.sleep(1)
        print(f"{found.count('ready')} of {documents} ready over host2, {time.perf_counter() - started:.0f} s later")
        if found.count("ready") != documents:
            raise SystemExit(f"not all are ready: {found}")
        start_host(first, "host1")
        for mode in ("lazy", "baseline", "mix"):
            if answer_of(one, workspace, mode) != answer_of(two, workspace, mode):
                raise SystemExit(f"the two hosts answer differently in mode {mode}")
        print("both hosts answer alike in lazy, baseline and mix")
    for host in (first, second):
        host.stop()


def extract_with(run: Shared, workers: int, documents: int) -> tuple[float, float]:
    """Documents a second, and the share of the machine's CPU that was in use."""
    host = run.host(f"workers{workers}", TRELLIS_WORKER_CONCURRENCY="1")
    host.start_api()
    host.start_beat()
    host.start_worker("first")
    host.wait_until_ready()
    with run.client(host) as client:
        # Models and connections are loaded before the clock runs.
        for number in range(1, workers):
            host.start_worker(f"more{number}")
        warm = add_workspace(client, f"warm-up {workers}")
        wait_for(client, {warm: [upload(client, warm, 9000 + workers * 100 + n) for n in range(2 * workers)]})
        # A workspace for each worker: writes into one graph follow each other.
        names = [add_workspace(client, f"of {workers}, {number}") for number in range(4)]
        used, started = _cpu_seconds(), time.perf_counter()
        sent: dict[str, list[str]] = {name: [] for name in names}
        for number in range(documents):
            name = names[number % len(names)]
            sent[name].append(upload(client, name, workers * 1000 + number))
        wait_for(client, sent)
        seconds = time.perf_counter() - started
        share = (_cpu_seconds() - used) / seconds / (os.cpu_count() or 1)
    host.stop()
    return documents / seconds, share


def wait_for(client: httpx.Client, sent: dict[str, list[str]]) -> None:
    for workspace, documents in sent.items():
        while (found := set(statuses(client, workspace, documents))) != {"ready"}:
            if found - {"ready", "processing"}:
                raise SystemExit(f"documents ended as {found}")
            time.sleep(0.5)


def _cpu_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.system + times.nice)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=24)
    parser.add_argument("--workers", default="1,2,4", help="numbers of workers by comma; empty: only the first part")
    parser.add_argument("--llm-ms", type=int, default=300)
    arguments = parser.parse_args()
    with run_stub("--llm-ms", str(arguments.llm_ms)) as stub, shared(stub) as run:
        lose_a_host(run, arguments.documents)
        first = 0.0
        for workers in (int(number) for number in arguments.workers.split(",") if number):
            rate, share = extract_with(run, workers, arguments.documents)
            first = first or rate / workers
            print(
                f"{workers} workers: {rate:.2f} documents/s, {rate / first:.2f} times one, {share:.0%} of the CPU in use"
            )
        capacity.report(run.servers.postgres.url("trellis"), 10**10)


if __name__ == "__main__":
    main()
