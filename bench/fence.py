"""What row level security on the engine's tables costs a `mix` query: the same questions with it and without, in turns.

    python -m bench.fence [--documents 60] [--rounds 8]

Starts a whole installation with offline models. Rounds with and without policies alternate on the same rows; it prints
the medians in milliseconds and their ratio. Policies are taken off and put back by the owner's role.
"""

import argparse
import asyncio
import statistics
import time

import asyncpg
import httpx

from bench.installation import Installation, installation, make_workspace

QUESTIONS = [f"Who replaced the seals of press {number} in Port Lindau?" for number in range(20)]
TEXT = "Helena Petrowa replaced the seals of press {number} in Port Lindau. Press {number} belongs to Orla Metals. "
ENGINE_TABLES = """
SELECT c.oid::regclass::text FROM pg_class c
 WHERE c.relkind IN ('r', 'p') AND c.relrowsecurity AND c.relname LIKE 'lightrag%'"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=8, help="of each kind, 20 questions a round")
    arguments = parser.parse_args()
    with installation("fence") as running, running.client(running.keys[0]) as client:
        workspace = make_workspace(client, "lazy", "graph")
        fill(client, workspace, arguments.documents)
        with_policies, without = measure(running, client, workspace, arguments.rounds)
    print(f"with policies:    median {with_policies:.1f} ms")
    print(f"without policies: median {without:.1f} ms")
    print(f"ratio: {with_policies / without:.3f}")


def fill(client: httpx.Client, workspace: str, documents: int) -> None:
    texts = [(TEXT.format(number=number) * 20).encode() for number in range(documents)]
    files = [("files", (f"{number}.txt", text, "text/plain")) for number, text in enumerate(texts)]
    answer = client.post(f"/workspaces/{workspace}/documents", files=files).raise_for_status().json()
    for item in answer["documents"]:
        path = item["links"]["self"].removeprefix("/v1")
        while (status := client.get(path, params={"wait": 30}).raise_for_status().json()["status"]) == "processing":
            pass
        if status != "ready":
            raise SystemExit(f"a document ended as {status}")


def measure(running: Installation, client: httpx.Client, workspace: str, rounds: int) -> tuple[float, float]:
    """Median milliseconds of a query with policies, and without."""
    times: dict[bool, list[float]] = {True: [], False: []}
    for question in QUESTIONS:
        ask(client, workspace, question)
    for turn in range(2 * rounds):
        is_fenced = turn % 2 == 0
        asyncio.run(set_policies(running.owner_url, is_fenced))
        ask(client, workspace, QUESTIONS[0])  # plans are made again after the tables changed
        times[is_fenced] += [ask(client, workspace, question) for question in QUESTIONS]
    asyncio.run(set_policies(running.owner_url, is_fenced=True))
    return statistics.median(times[True]), statistics.median(times[False])


def ask(client: httpx.Client, workspace: str, question: str) -> float:
    started = time.perf_counter()
    client.post(f"/workspaces/{workspace}/query", json={"query": question, "mode": "mix"}).raise_for_status()
    return (time.perf_counter() - started) * 1000


async def set_policies(owner_url: str, is_fenced: bool) -> None:
    connection = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
    try:
        for (table,) in await connection.fetch(
            ENGINE_TABLES if not is_fenced else ENGINE_TABLES.replace("relrowsecurity", "relforcerowsecurity")
        ):
            await connection.execute(f"ALTER TABLE {table} {'ENABLE' if is_fenced else 'DISABLE'} ROW LEVEL SECURITY")
    finally:
        await connection.close()


if __name__ == "__main__":
    main()
