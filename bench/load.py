"""Many clients at once: 64 of them mix modes over 20 workspaces of two tenants while documents arrive and are deleted.

    python -m bench.load [--clients 64] [--workspaces 20] [--pause 6] [--seconds 40] [--documents 10000] [--write docs/bench-load.md]

Starts a whole installation with offline models and one API process. Each answer is judged: no error, markers of its own
workspace only, nothing of a document whose deletion was answered before the question was asked. A client asks every
`--pause` seconds on average, at times drawn beforehand (an open loop: one that has to wait is late for its next question, and
that counts as well); in a last phase each asks as soon as it is answered. It ends with exit code 1 for an error or wrong
evidence, not for a slow machine.
"""

import argparse
import asyncio
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import aiohttp

from bench.installation import Installation, installation
from bench.load_clients import Asker, Corpus, Place, Writer, fill, places_of
from bench.load_report import Phase, Report, parallel, rate

DOCUMENTS = 8  # in each workspace at the beginning
GRAPH_EVERY = 4  # workspaces
IDLE_QUESTIONS = 120
SATURATED_SECONDS = 12
RATE_SECONDS = 5
FILES_A_REQUEST = 100
UPLOADS_AT_ONCE = 2
WRITERS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--workspaces", type=int, default=20, help="half of them of each tenant")
    parser.add_argument("--pause", type=float, default=6, help="seconds between a client's questions, on average")
    parser.add_argument("--seconds", type=float, default=40, help="of each phase with pauses")
    parser.add_argument(
        "--documents", type=int, default=10_000, help="that wait beside the health requests; 0 for none"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--write", type=Path, help="write the report here")
    arguments = parser.parse_args()
    with installation("load") as running:
        report = asyncio.run(measure(running, arguments))
    text = report.render(" ".join(["python -m bench.load", *sys.argv[1:]]))
    print(text)
    if arguments.write is not None:
        arguments.write.write_text(text)
    if report.faults:
        raise SystemExit(1)


async def measure(running: Installation, arguments: argparse.Namespace) -> Report:
    report = Report(arguments.clients, arguments.workspaces, arguments.pause)
    chance = seeded(arguments.seed)
    # Connections that were idle for longer may be closed by the server just when they are used again.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
    async with aiohttp.ClientSession(running.api_url, connector=connector, timeout=aiohttp.ClientTimeout(300)) as http:
        places = await places_of(http, running.keys, arguments.workspaces, graph_every=GRAPH_EVERY)
        corpus = Corpus()
        await fill(http, corpus, places, DOCUMENTS)
        asker = Asker(http, corpus, places, report.faults)
        await idle(asker, report, chance)
        await paced(asker, report, "clients", arguments, chance, writers=())
        writers = [Writer(http, corpus, places, seeded(number)) for number in range(WRITERS)]
        before = resident(running.api_pid)
        await paced(asker, report, "clients, documents come and go", arguments, chance, writers=writers)
        report.writes = sum(writer.added for writer in writers), sum(writer.removed for writer in writers)
        report.faults += [fault for writer in writers for fault in writer.faults]
        await paced(
            asker, report, "clients without a pause", argparse.Namespace(
                clients=arguments.clients, pause=0, seconds=SATURATED_SECONDS
            ), chance, writers=(),
        )  # fmt: skip
        report.memory = before, resident(running.api_pid)
        plain = next(place for place in places if not place.has_graph)
        await status_and_health(http, report, plain, corpus, arguments.documents)
    return report


async def idle(asker: Asker, report: Report, chance: random.Random) -> None:
    """One client after a first round that loads what is loaded late."""
    for _ in range(IDLE_QUESTIONS // 4):
        await asker.ask(chance)
    phase = Phase("one client, nothing else", 1)
    for _ in range(IDLE_QUESTIONS):
        phase.note(*await asker.ask(chance))
    report.phases.append(phase)


async def paced(
    asker: Asker,
    report: Report,
    name: str,
    arguments: argparse.Namespace,
    chance: random.Random,
    *,
    writers: Sequence[Writer],
) -> None:
    phase = Phase(f"{arguments.clients} {name}", arguments.clients)
    loop = asyncio.get_running_loop()
    until = loop.time() + arguments.seconds

    async def client(own: random.Random) -> None:
        due = loop.time() + own.uniform(0, arguments.pause)
        while due < until:
            await asyncio.sleep(due - loop.time())
            late = max(0.0, loop.time() - due)
            mode, milliseconds = await asker.ask(own)
            phase.note(mode, milliseconds + late * 1000)
            due = due + own.expovariate(1 / arguments.pause) if arguments.pause else loop.time()

    writing = [asyncio.create_task(writer.run(until)) for writer in writers]
    started = loop.time()
    await asyncio.gather(*(client(seeded(chance.random())) for _ in range(arguments.clients)), *writing)
    phase.seconds = loop.time() - started
    report.phases.append(phase)


async def status_and_health(
    http: aiohttp.ClientSession, report: Report, place: Place, corpus: Corpus, documents: int
) -> None:
    """Requests that load balancers and pollers send by the thousand."""
    document = corpus.documents_of(place)[0]
    path = f"/v1/workspaces/{place.workspace_id}/documents/{document}"
    report.rates.append(await rate(http, "GET /healthz", "/healthz", {}, RATE_SECONDS))
    report.rates.append(await rate(http, "GET /readyz", "/readyz", {}, RATE_SECONDS))
    report.rates.append(await rate(http, "GET …/documents/{id}", path, place.headers, RATE_SECONDS))
    if not documents:
        return
    await upload(http, place, documents)
    label = f"GET /readyz, 50 at once beside {documents:,} documents"
    report.rates.append(await parallel(http, label, "/readyz", 50, rounds=10))
    report.rates.append(
        await rate(http, f"GET …/documents/{{id}} beside {documents:,}", path, place.headers, RATE_SECONDS)
    )


async def upload(http: aiohttp.ClientSession, place: Place, documents: int) -> None:
    """Documents of one sentence each, which wait for the worker."""
    url = f"/v1/workspaces/{place.workspace_id}/documents"
    at_once = asyncio.Semaphore(UPLOADS_AT_ONCE)

    async def send(numbers: range) -> None:
        form = aiohttp.FormData()
        for number in numbers:
            form.add_field(
                "files", f"Queued note {number}.".encode(), filename=f"{number}.txt", content_type="text/plain"
            )
        async with at_once, http.post(url, data=form, headers=place.headers) as response:
            response.raise_for_status()

    requests = [range(first, min(documents, first + FILES_A_REQUEST)) for first in range(0, documents, FILES_A_REQUEST)]
    await asyncio.gather(*map(send, requests))


def seeded(seed: float) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same questions each time, not a secret


def resident(pid: int) -> int:
    """Bytes that a process holds in memory now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
