"""Queries of the audit log."""

from dataclasses import dataclass
from datetime import datetime

from app.db.models import AuditEvent
from app.db.repository import TenantRepository


@dataclass(frozen=True)
class AuditFilter:
    """Which events are wanted; None leaves a field open."""

    actor: str | None = None
    kind: str | None = None
    subject: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class AuditLog(TenantRepository):
    async def list(self, wanted: AuditFilter, *, before_id: int | None, limit: int) -> list[AuditEvent]:
        """Newest first, from the first older than `before_id`."""
        equal = {"actor": wanted.actor, "kind": wanted.kind, "subject": wanted.subject}
        conditions = [getattr(AuditEvent, name) == value for name, value in equal.items() if value is not None]
        if wanted.since is not None:
            conditions.append(AuditEvent.at >= wanted.since)
        if wanted.until is not None:
            conditions.append(AuditEvent.at < wanted.until)
        if before_id is not None:
            conditions.append(AuditEvent.id < before_id)
        query = self.rows(AuditEvent, *conditions).order_by(AuditEvent.id.desc()).limit(limit)
        return list(await self.session.scalars(query))
