"""How the installation stands: what waits and for how long, what is being written, how long the queues are."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import product
from typing import Any

from redis.exceptions import RedisError

from app import metrics
from app.db.session import CONNECTION_ERRORS, Database
from app.domain.ingestion.figures_repository import FiguresRepository
from app.jobs import QUEUES
from app.metrics import Figure, Values

# A watcher that asks several processes at once, and often, must not become a load.
FRESH_SECONDS = 2.0
# Before a watcher gives up waiting for the rest.
ANSWER_SECONDS = 3.0
ENGINES = ("lazy", "graph")
OPEN_STATES = ("queued", "running", "purging")
SUBJECTS = ("document", "workspace", "tenant")

# How the schema's function calls them, what they are told as, and which values are told as 0 where it has no row.
TOLD: Mapping[str, tuple[Figure, Figure | None, Iterable[tuple[str, ...]]]] = {
    "index": (metrics.INDEXES, metrics.INDEX_AGE, tuple(product(ENGINES, OPEN_STATES))),
    "deletion": (metrics.DELETIONS, metrics.DELETION_AGE, tuple((subject,) for subject in SUBJECTS)),
    "webhook": (metrics.WEBHOOKS_DUE, metrics.WEBHOOK_AGE, ((),)),
    "lease": (metrics.LEASES_HELD, None, ((),)),
}


class InstallationFigures:
    """`waiting` counts the messages in a queue of the broker. What does not answer is told as not reachable."""

    def __init__(self, database: Database, waiting: Callable[[str], Awaitable[int]]) -> None:
        self._database = database
        self._waiting = waiting
        self._reading = asyncio.Lock()
        self._read: tuple[float, Mapping[Figure, Values]] = (float("-inf"), {})

    async def read(self) -> Mapping[Figure, Values]:
        """At most `FRESH_SECONDS` old."""
        async with self._reading:
            read_at, figures = self._read
            now = asyncio.get_running_loop().time()
            if now - read_at > FRESH_SECONDS:
                figures = {**await self._of_rows(), **await self._of_queues()}
                reached = {("postgres",): metrics.INDEXES in figures, ("redis",): metrics.QUEUE_MESSAGES in figures}
                figures = {**figures, metrics.REACHABLE: {labels: float(is_up) for labels, is_up in reached.items()}}
                self._read = now, figures
            return figures

    async def _of_rows(self) -> Mapping[Figure, Values]:
        try:
            async with asyncio.timeout(ANSWER_SECONDS), self._database.system() as session:
                rows = await FiguresRepository(session).list()
        except CONNECTION_ERRORS:
            return {}
        figures: dict[Figure, dict[tuple[str, ...], float]] = {}
        for counts, ages, all_labels in TOLD.values():
            for figure in filter(None, (counts, ages)):
                figures[figure] = dict.fromkeys(all_labels, 0.0)
        for row in rows:
            counts, ages, _ = TOLD[row.subject]
            labels = _labels(row)
            figures[counts][labels] = float(row.items)
            if ages is not None:
                figures[ages][labels] = max(0.0, float(row.oldest_seconds))
        return figures

    async def _of_queues(self) -> Mapping[Figure, Values]:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return {metrics.QUEUE_MESSAGES: {(queue,): float(await self._waiting(queue)) for queue in QUEUES}}
        except (RedisError, OSError):
            return {}


def _labels(row: Any) -> tuple[str, ...]:
    return tuple(value for value in (row.label, row.state) if value)
