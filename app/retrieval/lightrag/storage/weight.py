"""How much a unit holds in memory, with the limits that keep one document from taking the process down."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from app.retrieval.lightrag.storage.context import UnitTooLarge
from app.retrieval.lightrag.storage.loader import BatchLoader
from app.retrieval.lightrag.storage.sql import value_bytes

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class UnitLimits:
    """Caps of one unit; `max_bytes` counts texts and vectors, to which Python adds about as much again."""

    max_objects: int = 50_000
    max_bytes: int = 512 * 1024 * 1024
    commit_timeout_seconds: float = 300


class UnitWeight:
    """Counts objects and bytes, and remembers the first failure of a read or of a limit.

    LightRAG turns errors of its storages into a failed document; the unit raises the error itself in the end.
    """

    def __init__(self, limits: UnitLimits) -> None:
        self.limits = limits
        self.objects = 0
        self.bytes = 0
        self.failure: BaseException | None = None

    def add(self, objects: int, size: int) -> None:
        """Raises UnitTooLarge as soon as a limit is passed."""
        self.objects += objects
        self.bytes += size
        if self.objects > self.limits.max_objects or self.bytes > self.limits.max_bytes:
            error = UnitTooLarge(
                "the write touches more objects than one unit may hold; split the document",
                objects=self.objects,
                bytes=self.bytes,
            )
            self.fail(error)
            raise error

    def fail(self, error: BaseException) -> None:
        self.failure = self.failure or error

    def loader(self, fetch: Callable[[list[K]], Awaitable[Mapping[K, V]]]) -> BatchLoader[K, V]:
        """A loader whose rows count and whose failures are remembered."""

        def on_load(asked: int, found: Iterable[V]) -> None:
            self.add(asked, sum(value_bytes(row) for row in found))

        return BatchLoader(fetch, on_load=on_load, on_error=self.fail)
