"""The usage ledger: one row for the model calls of one purpose in one piece of work."""

from uuid import UUID

from sqlalchemy import BigInteger, Double, ForeignKey, Identity, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, TenantRow


class UsageEvent(Base, TenantRow):
    """Outlives the workspace and the document it names: what was spent stays spent."""

    __tablename__ = "usage_events"
    __table_args__ = (
        Index(None, "tenant_id", "workspace_id", "created_at"),
        Index(None, "tenant_id", "created_at"),
        Index(
            "uq_usage_events_booking_id",
            "tenant_id",
            "booking_id",
            "profile_id",
            "purpose",
            unique=True,
            postgresql_where=text("booking_id IS NOT NULL"),
        ),
    )

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    workspace_id: Mapped[UUID]
    document_id: Mapped[UUID | None]
    version_id: Mapped[UUID | None]
    query_id: Mapped[UUID | None]
    booking_id: Mapped[UUID | None] = mapped_column(comment="Of calls that may be booked again after a lost answer.")
    profile_id: Mapped[UUID] = mapped_column(ForeignKey("model_profiles.id"))
    purpose: Mapped[str]
    calls: Mapped[int]
    tokens_in: Mapped[int] = mapped_column(BigInteger)
    tokens_out: Mapped[int] = mapped_column(BigInteger)
    is_estimated: Mapped[bool]
    estimated_calls: Mapped[int] = mapped_column(server_default="0")
    cost: Mapped[float | None] = mapped_column(Double, comment="At the model's prices of that time.")
    created_at: Mapped[CreatedAt]
