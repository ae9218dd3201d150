"""What became of documents, in order, and where it is told: webhooks and their deliveries."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Index, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, TenantEntity, TenantRow, tenant_reference


class EventCounter(Base, TenantRow):
    """The number of a workspace's last event. Its row is locked from the moment a number is given out to the commit."""

    __tablename__ = "event_counters"
    __table_args__ = (tenant_reference("workspaces", "workspace_id"),)

    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    last_id: Mapped[int] = mapped_column(BigInteger)


class Event(Base, TenantRow):
    """Written by a trigger at the commit of what it tells of; `id` counts within the workspace, in order of commits."""

    __tablename__ = "events"
    __table_args__ = (
        tenant_reference("workspaces", "workspace_id"),
        Index(None, "tenant_id", "document_id"),
        Index(None, "created_at"),
    )

    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    type: Mapped[str]
    document_id: Mapped[UUID]
    version_id: Mapped[UUID | None]
    transaction_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())


class Webhook(Base, TenantEntity):
    """An address that events of a workspace are sent to, signed with a secret of its own."""

    __tablename__ = "webhooks"
    __table_args__ = (
        tenant_reference("workspaces", "workspace_id"),
        CheckConstraint("status IN ('active', 'disabled')", name="status"),
        Index(None, "tenant_id", "workspace_id", "created_at"),
    )

    workspace_id: Mapped[UUID]
    url: Mapped[str]
    events: Mapped[list[str]]
    # The audit log leaves out columns of this name.
    key: Mapped[bytes] = mapped_column(comment="The secret, encrypted.")
    status: Mapped[str] = mapped_column(server_default="active")
    disabled_reason: Mapped[str | None]
    created_at: Mapped[CreatedAt]
    updated_at: Mapped[CreatedAt]


class WebhookDelivery(Base, TenantEntity):
    """One event for one webhook: `pending` until it was taken, or given up as `failed`."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        tenant_reference("webhooks", "webhook_id"),
        ForeignKeyConstraint(
            ["tenant_id", "workspace_id", "event_id"],
            ["events.tenant_id", "events.workspace_id", "events.id"],
            ondelete="CASCADE",
        ),
        UniqueConstraint("tenant_id", "webhook_id", "event_id"),
        CheckConstraint("state IN ('pending', 'delivered', 'failed')", name="state"),
        Index("ix_webhook_deliveries_due", "next_attempt_at", postgresql_where="state = 'pending'"),
        Index(None, "tenant_id", "workspace_id", "event_id"),
    )

    workspace_id: Mapped[UUID]
    webhook_id: Mapped[UUID]
    event_id: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[str] = mapped_column(server_default="pending")
    attempts: Mapped[int] = mapped_column(server_default="0")
    next_attempt_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    response_status: Mapped[int | None]
    error_code: Mapped[str | None]
    delivered_at: Mapped[datetime | None]
    created_at: Mapped[CreatedAt]
