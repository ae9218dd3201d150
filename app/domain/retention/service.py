"""Removes what has been kept for its time, a bounded number of rows a transaction."""

import structlog

from app.db.session import Database
from app.domain.idempotency.repository import forget_expired

logger = structlog.stdlib.get_logger(__name__)

MAX_ROWS = 5000


class Retention:
    """Any number of them may run: each skips the rows that another removes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> int:
        """How many rows were removed; what is left is for the next run."""
        async with self._database.system() as session:
            removed = await forget_expired(session, MAX_ROWS)
        if removed:
            logger.info("expired_rows_removed", rows=removed)
        return removed
