"""Removes what has been kept for its time, a bounded number of rows a transaction."""

from datetime import timedelta

import structlog

from app.db.session import Database
from app.domain.events.repository import forget_events
from app.domain.idempotency.repository import forget_expired
from app.domain.queries.log_repository import forget_queries

logger = structlog.stdlib.get_logger(__name__)

MAX_ROWS = 5000


class Retention:
    """Any number of them may run: each skips the rows that another removes."""

    def __init__(self, database: Database, *, event_seconds: float, query_seconds: float) -> None:
        self._database = database
        self._event_age = timedelta(seconds=event_seconds)
        self._query_age = timedelta(seconds=query_seconds)

    async def run(self) -> int:
        """How many rows were removed; what is left is for the next run."""
        async with self._database.system() as session:
            removed = await forget_expired(session, MAX_ROWS)
        async with self._database.system() as session:
            removed += await forget_events(session, self._event_age, MAX_ROWS)
        async with self._database.system() as session:
            removed += await forget_queries(session, self._query_age, MAX_ROWS)
        if removed:
            logger.info("expired_rows_removed", rows=removed)
        return removed
