"""Queries for events."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import select, text

from app.db.models import Event, EventCounter
from app.db.repository import TenantRepository
from app.db.session import SystemSession

FORGET = text("SELECT forget_events(:older_than, :max_rows)")


class EventRepository(TenantRepository):
    async def list(self, workspace_id: UUID, *, after: int, limit: int) -> Sequence[Event]:
        """In order, from the first with an id above `after`."""
        query = self.rows(Event, Event.workspace_id == workspace_id, Event.id > after).order_by(Event.id).limit(limit)
        return (await self.session.scalars(query)).all()

    async def last_id(self, workspace_id: UUID) -> int:
        """The largest that was given out, whether its event is still kept or not; 0 for none."""
        query = select(EventCounter.last_id).where(
            EventCounter.tenant_id == self.session.tenant_id, EventCounter.workspace_id == workspace_id
        )
        return await self.session.scalar(query) or 0


async def forget_events(session: SystemSession, older_than: timedelta, max_rows: int) -> int:
    """Remove events of all tenants that have been kept for their time, their deliveries with them; how many."""
    return int(await session.scalar(FORGET, {"older_than": older_than, "max_rows": max_rows}) or 0)
