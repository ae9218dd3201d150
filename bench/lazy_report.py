"""The page of `make bench-lazy`: figures by size, and the floors that they are held to."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

LEGS_P95_MS = 25.0
MAX_GROWTH = 3.0
ADD_P95_MS = 25.0
INDEX_RATE = 2000.0
NOT_COUNTED = "embedding"
HEAD = """# Lazy index: cost and speed

Written by `make bench-lazy`. Passages are those of the English multi-hop sets in copies whose rare words are renamed;
documents have 20 passages, questions are the sets' own. Embeddings are made up and their call is not counted. Milliseconds
by the clock, p50 / p95, on warm caches of Postgres; the engine's own cache is off. CPU is the mean of client and server
together for a question, which a busy machine falsifies less. "One of 50": beside a workspace of the
largest size and 48 of 100 passages.
"""


@dataclass(frozen=True)
class Indexing:
    """What it took to index passages; seconds by the clock and of CPU."""

    passages: int
    characters: int
    seconds: float
    client_cpu: float
    server_cpu: float


@dataclass(frozen=True)
class Sizes:
    tables: Mapping[str, int]
    passages: int
    characters: int


@dataclass
class Cost:
    """Milliseconds of something that was done again and again."""

    times: list[float] = field(default_factory=list)

    @contextmanager
    def measured(self) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.times.append((time.perf_counter() - started) * 1000)

    def percentile(self, share: int) -> float:
        return float(np.percentile(self.times, share))

    def __str__(self) -> str:
        return f"{self.percentile(50):.1f} / {self.percentile(95):.1f}"


@dataclass
class Answers:
    """Milliseconds of one mode, by leg; `total` is all legs together."""

    mode: str
    legs: defaultdict[str, Cost] = field(default_factory=lambda: defaultdict(Cost))
    cpu_ms: float = 0.0  # a question, of client and server

    def add(self, stage_ms: Mapping[str, float]) -> None:
        counted = {leg: spent for leg, spent in stage_ms.items() if leg != NOT_COUNTED}
        for leg, spent in {**counted, "total": sum(counted.values())}.items():
            self.legs[leg].times.append(spent)


@dataclass
class Report:
    passages: Sequence[int]
    indexing: dict[int, Indexing] = field(default_factory=dict)
    sizes: dict[int, Sizes] = field(default_factory=dict)
    answers: dict[tuple[int, str, str], Answers] = field(default_factory=dict)
    changes: dict[tuple[int, str], tuple[Cost, Cost]] = field(default_factory=dict)
    peak_megabytes: float = 0.0


def render(report: Report) -> str:
    """The whole page."""
    parts = [HEAD, _indexing(report), _sizes(report), _answers(report), _changes(report), _floors(report)]
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _indexing(report: Report) -> str:
    rows = []
    for size, found in report.indexing.items():
        cpu = [1000 * spent / found.passages for spent in (found.client_cpu, found.server_cpu)]
        rate = 2 * found.passages / (found.client_cpu + found.server_cpu)
        rows.append(
            [
                f"{size:,}",
                f"{found.characters / found.passages:.0f}",
                f"{found.passages / found.seconds:,.0f}",
                f"{cpu[0]:.2f}",
                f"{cpu[1]:.2f}",
                f"{rate:,.0f}",
            ]
        )
    head = [
        "up to passages",
        "characters each",
        "passages/s, clock",
        "client CPU ms",
        "server CPU ms",
        "passages/s on 2 cores",
    ]
    text = "Two writers, a transaction a document; vectors of 512 numbers included, rows of uploads not. The last column is what the CPU time allows."
    return (
        f"## Indexing\n\n{text}\n\n{_table(head, rows)}\nPeak memory of the client: {report.peak_megabytes:.0f} MB.\n"
    )


def _sizes(report: Report) -> str:
    names = sorted({name for found in report.sizes.values() for name in found.tables})
    rows = []
    for size, found in report.sizes.items():
        each = found.characters / found.passages
        per_passage = [found.tables.get(name, 0) / found.passages for name in names]
        rows.append(
            [
                f"{size:,}",
                *(f"{value:,.0f}" for value in per_passage),
                f"{per_passage[names.index('term_postings')] / each:.1f}",
            ]
        )
    return f"## Bytes a passage, indexes included\n\n{_table(['passages', *names, 'term_postings a character'], rows)}"


def _answers(report: Report) -> str:
    legs = ["vectors", "terms", "graph", "passages", "total"]
    rows = [
        [
            f"{size:,}",
            where,
            mode,
            *(str(found.legs[leg]) if leg in found.legs else "" for leg in legs),
            f"{found.cpu_ms:.1f}",
        ]
        for (size, where, mode), found in report.answers.items()
    ]
    return f"## Queries\n\n{_table(['passages', 'where', 'mode', *legs, 'CPU'], rows)}"


def _changes(report: Report) -> str:
    rows = [[f"{size:,}", where, str(added), str(gone)] for (size, where), (added, gone) in report.changes.items()]
    return f"## One document of 20 passages\n\n{_table(['passages', 'where', 'add', 'remove'], rows)}"


def _floors(report: Report) -> str:
    first, last = report.passages[0], report.passages[-1]
    worst = {
        size: max(
            found.legs["total"].percentile(95) for (asked, _, _), found in report.answers.items() if asked == size
        )
        for size in (first, last)
    }
    slowest = max(added.percentile(95) for added, _ in report.changes.values())
    indexed = report.indexing[last]
    rate = 2 * indexed.passages / (indexed.client_cpu + indexed.server_cpu)
    rows = [
        _verdict(f"all legs, p95 at {last:,} passages", worst[last], LEGS_P95_MS, "ms", is_good=worst[last] < LEGS_P95_MS),
        _verdict(
            f"growth from {first:,}", worst[last] / worst[first], MAX_GROWTH, "times",
            is_good=worst[last] / worst[first] < MAX_GROWTH,
        ),
        _verdict("adding a document, p95, the worst case", slowest, ADD_P95_MS, "ms", is_good=slowest < ADD_P95_MS),
        _verdict("index rate on 2 cores by CPU time", rate, INDEX_RATE, "passages/s", is_good=rate >= INDEX_RATE),
    ]  # fmt: skip
    return f"## Floors\n\n{_table(['what', 'found', 'floor', 'held'], rows)}"


def _verdict(what: str, found: float, floor: float, unit: str, *, is_good: bool) -> list[str]:
    return [what, f"{found:,.1f} {unit}", f"{floor:,.0f} {unit}", "yes" if is_good else "no"]
