"""The audit log. Triggers write it; the runtime roles may only read, and have taken out what quotes a document that is gone."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, DateTime, ForeignKey, Identity, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, TenantRow


class AuditEvent(Base, TenantRow):
    """One changed row: by whom, from where, in which request, and what it was before and is after."""

    __tablename__ = "audit_events"
    __table_args__ = (
        Index(None, "tenant_id", "subject", "id"),
        Index(
            "ix_audit_events_quoting",
            "tenant_id",
            "workspace_id",
            postgresql_where=text(
                "kind IN ('entity', 'alias', 'entity_change', 'entity_edit', 'entity_rejection')"
                " AND (before IS NOT NULL OR after IS NOT NULL)"
            ),
        ),
    )

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("clock_timestamp()"))
    actor: Mapped[str]
    address: Mapped[str | None]
    request_id: Mapped[str | None]
    action: Mapped[str]
    change: Mapped[str]
    kind: Mapped[str]
    subject: Mapped[str]
    workspace_id: Mapped[UUID | None]
    before: Mapped[dict[str, Any] | None]
    after: Mapped[dict[str, Any] | None]
    # When that which it quoted of a document went with it.
    redacted_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
