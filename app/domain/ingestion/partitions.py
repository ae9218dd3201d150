"""Moves workspaces that have grown large to vector partitions of their own, and drops those of workspaces that are gone."""

import structlog
from sqlalchemy.exc import DBAPIError

from app.db.session import Database, is_lock_timeout
from app.db.vector_partitions import VectorPartitions

logger = structlog.stdlib.get_logger(__name__)


class VectorUpkeep:
    """Safe to run anywhere and at any time: what another one works on is left to it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> int:
        """Do what is to be done, each in a transaction of its own; the number of partitions made and dropped."""
        async with self._database.system() as session:
            found = await VectorPartitions(session).list_work()
        done = 0
        for work in found:
            try:
                async with self._database.system() as session:
                    outcome = await VectorPartitions(session).tend(work)
            except DBAPIError as error:
                if not is_lock_timeout(error):
                    raise
                # The table was in use all the time; there is a next run.
                outcome = "busy"
            done += outcome in ("split", "dropped")
            logger.info("vectors_tended", table=work.table, workspace_id=str(work.workspace_id), outcome=outcome)
        return done
