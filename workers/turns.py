"""Which of the tasks that can wait a process runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Which of them run in this process: each once at a time, and never in all of its slots. Their queue comes first, so where they
    take longer than the time between two of them, as on a busy machine, they would leave no slot for documents."""

    def __init__(self, slots: int) -> None:
        self._most = max(1, slots - 1)
        self._running: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def of(self, task: str) -> Iterator[bool]:
        """Whether it is the task's turn; if not, another one is due soon."""
        with self._lock:
            is_free = task not in self._running and len(self._running) < self._most
            if is_free:
                self._running.add(task)
        try:
            yield is_free
        finally:
            if is_free:
                with self._lock:
                    self._running.discard(task)
