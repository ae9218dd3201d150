"""Figures of the load bench, and how they are told."""

import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp

GOAL = 2.0
RATE_CLIENTS = 32
SHOWN_FAULTS = 20


@dataclass
class Phase:
    """Milliseconds of the questions of one phase, by mode."""

    name: str
    clients: int
    seconds: float = 0.0
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def note(self, mode: str, milliseconds: float) -> None:
        self.times[mode].append(milliseconds)

    @property
    def all(self) -> list[float]:
        return [value for times in self.times.values() for value in times]

    @property
    def p95(self) -> float:
        return p95(self.all)


@dataclass(frozen=True)
class Rate:
    """Requests a second, or milliseconds of requests sent at once."""

    name: str
    figure: str
    failures: int


@dataclass
class Report:
    clients: int
    workspaces: int
    pause: float
    apis: int
    phases: list[Phase] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    writes: tuple[int, int] = (0, 0)
    memory: tuple[int, int] = (0, 0)

    def render(self, command: str) -> str:
        """The whole page. Its phases are: idle, clients, clients with writes, clients without a pause."""
        idle, _, loaded, *_ = self.phases
        ratio = loaded.p95 / idle.p95
        before, after = (value / 2**20 for value in self.memory)
        failures = sum(rate.failures for rate in self.rates)
        lines = [
            "# Queries under load",
            "",
            f"Written by `{command}`: {self.clients} clients, each asking every {self.pause:g} seconds on average (an open loop), mix modes over",
            f"{self.workspaces} workspaces of two tenants, while {self.writes[0]} documents arrive and {self.writes[1]} are deleted. API processes: {self.apis}, one worker,",
            "offline models, clients on the same two cores. Every answer was judged by markers of its workspace and by what had been",
            "deleted, at whichever process, before it was asked for. Time begins when a question is due, so waiting for an earlier",
            "answer counts. The last phase is saturated: each client asks as soon as it is answered, so its times are those of a",
            "queue, and its questions a second are what the two cores can do.",
            "",
            f"- Errors and wrong evidence: **{len(self.faults)}** in {sum(len(phase.all) for phase in self.phases)} questions;"
            f" {failures} of the other requests failed.",
            f"- p95 with documents coming and going: **{loaded.p95:.0f} ms**, idle {idle.p95:.0f} ms: ratio **{ratio:.2f}**"
            f" (goal: below {GOAL:g}; {'met' if ratio < GOAL else 'missed'}).",
            f"- Memory of the API processes before the writes and at the end: {before:.0f} MB, {after:.0f} MB.",
            "",
            "## Milliseconds",
            "",
            "| phase | questions | a second | median | p95 | longest |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
            *(_row(phase.name, phase.all, phase.seconds) for phase in self.phases),
            "",
            "## By mode, median / p95",
            "",
            f"| mode | {' | '.join(phase.name for phase in self.phases)} |",
            "| --- |" + " ---: |" * len(self.phases),
            *(self._mode(mode) for mode in sorted(idle.times)),
            "",
            "## Status and health",
            "",
            "| request | figure | failures |",
            "| --- | ---: | ---: |",
            *(f"| `{rate.name}` | {rate.figure} | {rate.failures} |" for rate in self.rates),
            "",
        ]
        if self.faults:
            lines += ["## Faults", "", *(f"- {fault}" for fault in self.faults[:SHOWN_FAULTS]), ""]
        return "\n".join(lines)

    def _mode(self, mode: str) -> str:
        cells = (
            f"{statistics.median(times):.0f} / {p95(times):.0f}" if (times := phase.times.get(mode)) else "n/a"
            for phase in self.phases
        )
        return f"| {mode} | {' | '.join(cells)} |"


def _row(name: str, times: Sequence[float], seconds: float) -> str:
    speed = len(times) / (seconds or sum(times) / 1000)
    return f"| {name} | {len(times)} | {speed:.1f} | {statistics.median(times):.0f} | {p95(times):.0f} | {max(times):.0f} |"


def p95(times: Sequence[float]) -> float:
    return sorted(times)[max(0, round(0.95 * len(times)) - 1)]


async def rate(http: aiohttp.ClientSession, name: str, path: str, headers: Mapping[str, str], seconds: float) -> Rate:
    """Requests a second of clients that ask again as soon as they are answered."""
    done, failures = 0, 0
    until = time.monotonic() + seconds

    async def client() -> None:
        nonlocal done, failures
        while time.monotonic() < until:
            async with http.get(path, headers=headers) as response:
                await response.read()
            done += 1
            failures += response.status != 200

    await asyncio.gather(*(client() for _ in range(RATE_CLIENTS)))
    return Rate(name, f"{done / seconds:.0f} a second", failures)


async def parallel(http: aiohttp.ClientSession, name: str, path: str, count: int, *, rounds: int) -> Rate:
    """The longest of requests that are sent at once, by its median over rounds."""
    longest, failures = [], 0

    async def one() -> float:
        nonlocal failures
        started = time.perf_counter()
        async with http.get(path) as response:
            await response.read()
        failures += response.status != 200
        return (time.perf_counter() - started) * 1000

    for _ in range(rounds):
        longest.append(max(await asyncio.gather(*(one() for _ in range(count)))))
    return Rate(name, f"{statistics.median(longest):.0f} ms until the last of them", failures)
