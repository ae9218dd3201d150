"""Writes answered questions into the query log. What cannot be written is lost, and the query is answered all the same."""

import asyncio
from typing import Final
from uuid import UUID

import structlog
from sqlalchemy.exc import IntegrityError

from app.db.session import CONNECTION_ERRORS, Database, is_disconnect, is_lock_timeout
from app.domain.queries.log_repository import LogEntry, QueryLogRepository
from app.domain.workspaces.repository import WorkspaceRecord
from app.domain.workspaces.settings import WorkspaceSettings

# A query never waits longer than this for its own log.
MAX_SECONDS: Final = 1.0
MAX_LOCK_MS: Final = 200
_SHARES: Final = 2**32

logger = structlog.stdlib.get_logger(__name__)


class QueryLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, record: WorkspaceRecord, entry: LogEntry) -> None:
        """Log the query if its workspace's share says so; without its text unless the workspace wants it kept."""
        settings = WorkspaceSettings.stored(record.row.settings)
        if not is_sampled(entry.query_id, settings.query_log_share):
            return
        kept = entry if settings.query_log_text else entry.without_text()
        try:
            async with (
                asyncio.timeout(MAX_SECONDS),
                self._database.tenant(record.row.tenant_id, lock_wait_ms=MAX_LOCK_MS) as session,
            ):
                await QueryLogRepository(session).add(record.row.id, kept)
        except CONNECTION_ERRORS as error:
            # A document or the workspace may have been removed meanwhile.
            is_gone = isinstance(error, IntegrityError)
            if not (is_gone or is_disconnect(error) or is_lock_timeout(error) or isinstance(error, TimeoutError)):
                raise
            logger.warning("query_not_logged", query_id=str(entry.query_id), error_type=type(error).__name__)


def is_sampled(query_id: UUID, share: float) -> bool:
    """By the id, which is random: the same query is either logged or not, whoever asks."""
    return query_id.int % _SHARES < share * _SHARES
