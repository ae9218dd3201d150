"""Milliseconds by stage of one search."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stages:
    """Adds up the time spent in each named stage."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - started) * 1000
            self.milliseconds[stage] = self.milliseconds.get(stage, 0.0) + spent
