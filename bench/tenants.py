"""What a tenant pays for the others: the same requests on an installation of one tenant and on one of many.

    python -m bench.tenants [--tenants 200] [--workspaces 10] [--rounds 40]

Starts a whole installation with offline models, asks as a tenant with few workspaces, adds tenants with as many
workspaces and a document each, and asks again. It prints the medians in milliseconds and their ratios.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable, Sequence

import httpx

from app.db.session import Database
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService
from bench.installation import Installation, installation

TEXT = "Report {number}. Helena Petrowa replaced the seals of press {number} in Port Lindau."
QUESTION = {"query": "Who replaced the seals of press 4?", "mode": "lazy"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenants", type=int, default=200)
    parser.add_argument("--workspaces", type=int, default=10, help="of each tenant")
    parser.add_argument("--rounds", type=int, default=40, help="of each request")
    arguments = parser.parse_args()
    with installation("tenants") as running, running.client(running.keys[0]) as client:
        workspaces = fill(client, arguments.workspaces)
        requests = requests_of(client, workspaces)
        before = {name: median_ms(request, arguments.rounds) for name, request in requests.items()}
        keys = asyncio.run(add_tenants(running, arguments.tenants - 1))
        for count, key in enumerate(keys, 2):
            with running.client(key) as other:
                fill(other, arguments.workspaces)
            if count % 20 == 0:
                print(f"{count} tenants with {count * arguments.workspaces} workspaces", flush=True)
        after = {name: median_ms(request, arguments.rounds) for name, request in requests.items()}
    print(f"{'request':28} {'one tenant':>12} {'all tenants':>12} {'ratio':>7}")
    for name in requests:
        print(f"{name:28} {before[name]:9.1f} ms {after[name]:9.1f} ms {after[name] / before[name]:7.2f}")


def fill(client: httpx.Client, count: int) -> Sequence[str]:
    """Workspaces, with a document that is ready in the first."""
    bodies = [{"name": f"workspace {number}", "engines": ["lazy"]} for number in range(count)]
    workspaces = [str(client.post("/workspaces", json=body).raise_for_status().json()["id"]) for body in bodies]
    body = {"title": "report", "text": TEXT.format(number=4)}
    answer = client.post(f"/workspaces/{workspaces[0]}/documents", json=body).raise_for_status().json()
    path = answer["documents"][0]["links"]["self"].removeprefix("/v1")
    while (status := client.get(path, params={"wait": 30}).raise_for_status().json()["status"]) == "processing":
        pass
    if status != "ready":
        raise SystemExit(f"a document ended as {status}")
    return workspaces


def requests_of(client: httpx.Client, workspaces: Sequence[str]) -> dict[str, Callable[[], httpx.Response]]:
    first = f"/workspaces/{workspaces[0]}"
    return {
        "GET /me": lambda: client.get("/me"),
        "GET /workspaces": lambda: client.get("/workspaces"),
        "GET …/documents": lambda: client.get(f"{first}/documents"),
        "GET /usage": lambda: client.get("/usage"),
        "POST …/query (lazy)": lambda: client.post(f"{first}/query", json=QUESTION),
        "upload": lambda: client.post(
            f"{first}/documents", json={"title": "again", "text": TEXT.format(number=time.time_ns())}
        ),
    }


def median_ms(request: Callable[[], httpx.Response], rounds: int) -> float:
    """Median milliseconds of a request, its first time left out."""
    request().raise_for_status()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        request().raise_for_status()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


async def add_tenants(running: Installation, count: int) -> list[str]:
    """An admin's key of each."""
    database = Database(running.owner_url, pool_size=1)
    try:
        tenants = TenantService(database)
        made = [await tenants.create_tenant(f"tenant {number}") for number in range(count)]
        return [await tenants.create_key(tenant.id, name="bench", role=Role.ADMIN) for tenant in made]
    finally:
        await database.close()


if __name__ == "__main__":
    main()
