"""How long one tenant's single document takes while another has thousands queued, beside the same on an idle installation.

    python -m bench.fairness [--backlog 10000] [--documents 5]

Starts a whole installation with offline models. It prints seconds from the upload's answer to `ready`.
"""

import argparse
import asyncio
import statistics
import time
from pathlib import Path

import httpx
from pydantic import SecretStr

from app.db.provision import provision_database
from app.db.schema import upgrade_schema
from app.db.session import Database
from app.devstack.app_processes import AppProcesses
from app.devstack.run_folders import close_run_folder, open_run_folder
from app.devstack.servers import Servers
from app.domain.models.offline import register_offline_models
from app.domain.models.service import ModelProfiles
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService

FILES_A_REQUEST = 100
TEXT = "Report {number} of {owner}. The seals of press 4 were replaced by Helena Petrowa in Port Lindau. " * 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backlog", type=int, default=10_000, help="documents that the busy tenant uploads")
    parser.add_argument("--documents", type=int, default=5, help="single uploads that are timed, one after another")
    arguments = parser.parse_args()
    folder = open_run_folder("fairness")
    try:
        run(folder, arguments.backlog, arguments.documents)
    finally:
        close_run_folder(folder)


def run(folder: Path, backlog: int, documents: int) -> None:
    servers = Servers(folder)
    processes: AppProcesses | None = None
    try:
        servers.start()
        urls = asyncio.run(provision_database(servers.postgres.url(), "trellis", servers.secrets.roles))
        upgrade_schema(urls.owner)
        busy_key, quiet_key = asyncio.run(_seed(urls.owner, servers.secrets.secret_key))
        processes = AppProcesses(
            folder,
            {
                "TRELLIS_SECRET_KEY": servers.secrets.secret_key,
                "TRELLIS_LOG_LEVEL": "WARNING",
                "TRELLIS_DATABASE_URL": urls.app,
                "TRELLIS_ENGINE_DATABASE_URL": urls.engine,
                "TRELLIS_REDIS_URL": servers.redis.url(),
                "TRELLIS_BLOB_URL": f"file://{folder / 'blobs'}",
            },
        )
        processes.start_api()
        processes.start_worker()
        processes.start_beat()
        processes.wait_until_ready()
        with _client(processes, busy_key) as busy, _client(processes, quiet_key) as quiet:
            measure(busy, quiet, backlog, documents)
    finally:
        if processes is not None:
            processes.stop()
        servers.stop()


def measure(busy: httpx.Client, quiet: httpx.Client, backlog: int, documents: int) -> None:
    own, theirs = _workspace(quiet), _workspace(busy)
    seconds_to_ready(quiet, own, "warm-up")  # models are loaded by the first
    idle = [seconds_to_ready(quiet, own, f"idle {number}") for number in range(documents)]
    print(f"idle:    {_shown(idle)}")
    for start in range(0, backlog, FILES_A_REQUEST):
        files = [
            ("files", (f"{number}.txt", TEXT.format(number=number, owner="busy").encode(), "text/plain"))
            for number in range(start, min(backlog, start + FILES_A_REQUEST))
        ]
        busy.post(f"/workspaces/{theirs}/documents", files=files).raise_for_status()
    print(f"backlog: {backlog} uploaded by another tenant")
    loaded = [seconds_to_ready(quiet, own, f"loaded {number}") for number in range(documents)]
    left = busy.get(f"/workspaces/{theirs}/documents", params={"status": "processing", "limit": 1}).json()["items"]
    print(f"loaded:  {_shown(loaded)}")
    print(f"ratio:   {statistics.median(loaded) / statistics.median(idle):.1f} (median)")
    print(
        f"backlog: {'still there at the end, so all were measured beside it' if left else 'was done before the end: ask for more'}"
    )


def seconds_to_ready(client: httpx.Client, workspace: str, name: str) -> float:
    """From the upload's answer to the final status."""
    body = {"title": name, "text": TEXT.format(number=name, owner="quiet")}
    answer = client.post(f"/workspaces/{workspace}/documents", json=body).raise_for_status().json()
    path = answer["documents"][0]["links"]["self"].removeprefix("/v1")
    started = time.perf_counter()
    while True:
        document = client.get(path, params={"wait": 30}).raise_for_status().json()
        if document["status"] != "processing":
            break
    if document["status"] != "ready":
        raise SystemExit(f"{name} ended as {document['status']}")
    return time.perf_counter() - started


def _shown(seconds: list[float]) -> str:
    return f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s of {len(seconds)} documents"


def _client(processes: AppProcesses, key: str) -> httpx.Client:
    return httpx.Client(base_url=f"{processes.api_url}/v1", headers={"Authorization": f"Bearer {key}"}, timeout=120)


def _workspace(client: httpx.Client) -> str:
    return str(client.post("/workspaces", json={"name": "bench"}).raise_for_status().json()["id"])


async def _seed(owner_url: str, secret_key: str) -> tuple[str, str]:
    database = Database(owner_url, pool_size=1)
    try:
        await register_offline_models(ModelProfiles(database, SecretStr(secret_key)))
        tenants = TenantService(database)
        keys = []
        for name in ("busy", "quiet"):
            tenant = await tenants.create_tenant(name)
            keys.append(await tenants.create_key(tenant.id, name="bench", role=Role.ADMIN))
    finally:
        await database.close()
    return keys[0], keys[1]


if __name__ == "__main__":
    main()
