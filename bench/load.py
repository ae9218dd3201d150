"""Many clients at once: 64 of them mix modes over 20 workspaces of two tenants while documents arrive and are deleted.

    python -m bench.load [--clients 64] [--workspaces 20] [--pause 6] [--seconds 40] [--documents 10000] [--apis 2] [--write docs/bench-load.md]

Starts a whole installation with offline models, one worker, and an API process for each core; clients are dealt to these as a
load balancer would, writers as well. Each answer is judged: no error, markers of its own
workspace only, nothing of a document whose deletion was answered before the question was asked. A client asks every
`--pause` seconds on average, at times drawn beforehand (an open loop: one that has to wait is late for its next question, and
that counts as well); in a last phase each asks as soon as it is answered. It ends with exit code 1 for an error or wrong
evidence, not for a slow machine.
"""

import argparse
import asyncio
import itertools
import os
import random
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
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
    parser.add_argument("--apis", type=int, default=os.cpu_count(), help="API processes")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--write", type=Path, help="write the report here")
    arguments = parser.parse_args()
    with installation("load", apis=arguments.apis) as running:
        report = asyncio.run(measure(running, arguments))
    text = report.render(" ".join(["python -m bench.load", *sys.argv[1:]]))
    print(text)
    if arguments.write is not None:
        arguments.write.write_text(text)
    if report.faults:
        raise SystemExit(1)


async def measure(running: Installation, arguments: argparse.Namespace) -> Report:
    report = Report(arguments.clients, arguments.workspaces, arguments.pause, arguments.apis)
    chance = seeded(arguments.seed)
    async with AsyncExitStack() as stack:
        https = [await stack.enter_async_context(session(url)) for url in running.api_urls]
        http = https[0]
        places = await places_of(http, running.keys, arguments.workspaces, graph_every=GRAPH_EVERY)
        corpus = Corpus()
        await fill(http, corpus, places, DOCUMENTS)
        askers = [Asker(http, corpus, places, report.faults) for http in https]
        await idle(askers, report, chance)
        await paced(askers, report, "clients", arguments, chance, writers=())
        writers = [Writer(https[number % len(https)], corpus, places, seeded(number)) for number in range(WRITERS)]
        before = sum(map(resident, running.api_pids))
        await paced(askers, report, "clients, documents come and go", arguments, chance, writers=writers)
        report.writes = sum(writer.added for writer in writers), sum(writer.removed for writer in writers)
        report.faults += [fault for writer in writers for fault in writer.faults]
        await paced(
            askers, report, "clients without a pause", argparse.Namespace(
                clients=arguments.clients, pause=0, seconds=SATURATED_SECONDS
            ), chance, writers=(),
        )  # fmt: skip
        report.memory = before, sum(map(resident, running.api_pids))
        plain = next(place for place in places if not place.has_graph)
        await status_and_health(http, report, plain, corpus, arguments.documents)
    return report


def session(url: str) -> aiohttp.ClientSession:
    # Connections that were idle for longer may be closed by the server just when they are used again.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
    return aiohttp.ClientSession(url, connector=connector, timeout=aiohttp.ClientTimeout(300))


async def idle(askers: Sequence[Asker], report: Report, chance: random.Random) -> None:
    """One client after a first round that loads what is loaded late."""
    turns = itertools.cycle(askers)
    for _ in range(IDLE_QUESTIONS // 4 * len(askers)):
        await next(turns).ask(chance)
    phase = Phase("one client, nothing else", 1)
    for _ in range(IDLE_QUESTIONS):
        phase.note(*await next(turns).ask(chance))
    report.phases.append(phase)


async def paced(
    askers: Sequence[Asker],
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

    async def client(asker: Asker, own: random.Random) -> None:
        due = loop.time() + own.uniform(0, arguments.pause)
        while due < until:
            await asyncio.sleep(due - loop.time())
            late = max(0.0, loop.time() - due)
            mode, milliseconds = await asker.ask(own)
            phase.note(mode, milliseconds + late * 1000)
            due = due + own.expovariate(1 / arguments.pause) if arguments.pause else loop.time()

    writing = [asyncio.create_task(writer.run(until)) for writer in writers]
    started = loop.time()
    await asyncio.gather(
        *(
            client(asker, seeded(chance.random()))
            for asker in itertools.islice(itertools.cycle(askers), arguments.clients)
        ),
        *writing,
    )
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
