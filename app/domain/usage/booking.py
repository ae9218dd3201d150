"""Writes what a query asked of models into the ledger. What cannot be written is told, and the answer given all the same."""

import asyncio
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog

from app.db.base import TenantId, WorkspaceId
from app.db.session import CONNECTION_ERRORS, Database, TenantSession
from app.domain.usage.repository import UsageLedger
from app.metrics import USAGE_NOT_RECORDED
from app.providers.usage import UsageMeter

# An answer that is there waits no longer than this for its bill.
MAX_SECONDS: Final = 5.0
NOT_RECORDED: Final = "What this took of models could not be written to the ledger, so `GET /v1/usage` lacks it."

logger = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class Booking:
    """`cost` is None where no model has a price, and where nothing is known of it because it was not recorded."""

    cost: float | None = None
    is_recorded: bool = True

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.is_recorded else (NOT_RECORDED,)


async def book_query(
    database: Database, tenant_id: TenantId, workspace_id: WorkspaceId, query_id: UUID, meter: UsageMeter
) -> Booking:
    """In a transaction of its own, and once for each query and purpose, however often it is called. Never fails for want of
    the database: the models have been paid for already."""
    if not meter.totals:
        return Booking()
    try:
        async with asyncio.timeout(MAX_SECONDS), database.tenant(tenant_id) as session:
            return Booking(await add_query(session, workspace_id, query_id, meter))
    except CONNECTION_ERRORS as error:
        note_not_recorded("query", error, query_id=query_id)
        return Booking(is_recorded=False)


async def add_query(
    session: TenantSession, workspace_id: WorkspaceId, query_id: UUID, meter: UsageMeter
) -> float | None:
    """Book a query with the caller's transaction; what it cost."""
    if not meter.totals:
        return None
    return await UsageLedger(session).add(meter, workspace_id, query_id=query_id, booking_id=query_id)


def note_not_recorded(work: str, error: BaseException, **ids: UUID) -> None:
    """Count and log model calls of a `query` or an `ingestion` that the ledger lacks."""
    USAGE_NOT_RECORDED.labels(work).inc()
    cause = getattr(error, "orig", None) or error
    logger.error("usage_not_recorded", error_type=type(cause).__name__, **{name: str(key) for name, key in ids.items()})
