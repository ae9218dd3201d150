"""Answers kept for requests that are sent again with the same Idempotency-Key."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt


class IdempotencyKey(Base):
    """A request under way (`status` is null; `owner` has until `lease_expires_at`) or its answer, until `expires_at`."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (Index(None, "expires_at"),)

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True)
    caller: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    route: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[UUID]
    lease_expires_at: Mapped[datetime]
    fingerprint: Mapped[bytes | None]
    status: Mapped[int | None]
    headers: Mapped[dict[str, Any] | None]
    body_encrypted: Mapped[bytes | None]
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[datetime]
