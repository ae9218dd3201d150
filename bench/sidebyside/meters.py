"""What a run costs its processes: CPU of whole process trees, and their peak memory. Statements are counted elsewhere."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil

SAMPLE_SECONDS = 0.25
MEGABYTE = 2**20


@dataclass(frozen=True)
class Cost:
    """Of one group of processes: CPU seconds spent, and the most memory (sum of resident sizes) seen at one moment."""

    cpu_seconds: float
    peak_megabytes: float


@dataclass
class Group:
    """Root processes whose trees are measured together."""

    roots: Sequence[int]
    _started: float = field(default=0.0, init=False)
    _peak: int = field(default=0, init=False)

    def begin(self) -> None:
        self._started = self.spent()
        self.sample()

    def sample(self) -> None:
        self._peak = max(self._peak, sum(_memory(process) for process in self._tree()))

    def cost(self) -> Cost:
        return Cost(self.spent() - self._started, self._peak / MEGABYTE)

    def _tree(self) -> Iterator[psutil.Process]:
        for root in self.roots:
            process = psutil.Process(root)
            yield process
            yield from process.children(recursive=True)

    def spent(self) -> float:
        """CPU seconds so far. Children that ended are counted by whoever waited for them: the kernel adds their time to the parent's."""
        return sum(_cpu(process) for process in self._tree())


@contextmanager
def measured(groups: dict[str, Group]) -> Iterator[dict[str, Cost]]:
    """Measure each group for the block; the dictionary is filled when the block ends."""
    costs: dict[str, Cost] = {}
    is_over = threading.Event()

    def sample() -> None:
        while not is_over.wait(SAMPLE_SECONDS):
            for group in groups.values():
                group.sample()

    for group in groups.values():
        group.begin()
    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield costs
    finally:
        is_over.set()
        sampler.join()
        costs.update({name: group.cost() for name, group in groups.items()})


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
