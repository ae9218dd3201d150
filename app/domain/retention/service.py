"""Removes what has been kept for its time, a bounded number of rows a transaction."""

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

import structlog

from app.db.session import Database, SystemSession
from app.domain.events.repository import forget_events
from app.domain.idempotency.repository import forget_expired
from app.domain.queries.log_repository import forget_queries

logger = structlog.stdlib.get_logger(__name__)

MAX_ROWS = 5000
# Of one run, so that it does not keep what is due after it; what is left is for the next.
MAX_SECONDS = 60.0
Forget = Callable[[SystemSession], Awaitable[int]]


class Retention:
    """Any number of them may run: each skips the rows that another removes."""

    def __init__(self, database: Database, *, event_seconds: float, query_seconds: float) -> None:
        self._database = database
        self._event_age = timedelta(seconds=event_seconds)
        self._query_age = timedelta(seconds=query_seconds)

    async def run(self) -> int:
        """How many rows were removed; what is left is for the next run."""
        until = time.monotonic() + MAX_SECONDS
        removed = 0
        for forget in (
            lambda session: forget_expired(session, MAX_ROWS),
            lambda session: forget_events(session, self._event_age, MAX_ROWS),
            lambda session: forget_queries(session, self._query_age, MAX_ROWS),
        ):
            removed += await self._forget_all(forget, until)
        if removed:
            logger.info("expired_rows_removed", rows=removed)
        return removed

    async def _forget_all(self, forget: Forget, until: float) -> int:
        """Batch by batch, each in a transaction of its own."""
        removed = 0
        while True:
            async with self._database.system() as session:
                batch = await forget(session)
            removed += batch
            if batch < MAX_ROWS or time.monotonic() > until:
                return removed
