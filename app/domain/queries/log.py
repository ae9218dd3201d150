"""Writes answered questions into the query log and the ledger. What cannot be written is told, and the answer given all the same."""

import asyncio
from dataclasses import replace
from typing import Final
from uuid import UUID

import structlog

from app.db.base import TenantId, WorkspaceId
from app.db.session import CONNECTION_ERRORS, Database
from app.domain.queries.log_repository import LogEntry, QueryLogRepository
from app.domain.usage.booking import Booking, add_query, book_query
from app.domain.workspaces.repository import WorkspaceRecord
from app.domain.workspaces.settings import WorkspaceSettings
from app.providers.usage import UsageMeter

# A query never waits longer than this for its own log.
MAX_SECONDS: Final = 1.0
MAX_LOCK_MS: Final = 200
_SHARES: Final = 2**32

logger = structlog.stdlib.get_logger(__name__)


class QueryLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def close(self, record: WorkspaceRecord, entry: LogEntry, meter: UsageMeter) -> Booking:
        """Book what the query took of models, and log it if its workspace's share says so, in one transaction; without its
        text unless the workspace wants it kept. What keeps it from the log does not keep it from the ledger."""
        tenant_id, workspace_id = TenantId(record.row.tenant_id), WorkspaceId(record.row.id)
        settings = WorkspaceSettings.stored(record.row.settings)
        if is_sampled(entry.query_id, settings.query_log_share):
            kept = entry if settings.query_log_text else entry.without_text()
            try:
                async with (
                    asyncio.timeout(MAX_SECONDS),
                    self._database.tenant(tenant_id, lock_wait_ms=MAX_LOCK_MS) as session,
                ):
                    cost = await add_query(session, workspace_id, entry.query_id, meter)
                    await QueryLogRepository(session).add(workspace_id, replace(kept, cost=cost))
                return Booking(cost)
            except CONNECTION_ERRORS as error:
                # A document or the workspace may have been removed meanwhile, the database be away or slow.
                logger.warning("query_not_logged", query_id=str(entry.query_id), error_type=type(error).__name__)
        return await book_query(self._database, tenant_id, workspace_id, entry.query_id, meter)


def is_sampled(query_id: UUID, share: float) -> bool:
    """By the id, which is random: the same query is either logged or not, whoever asks."""
    return query_id.int % _SHARES < share * _SHARES
