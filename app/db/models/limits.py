"""What tenants may use, hold and have spent. The counters are written by triggers and the one function that gives out turns."""

from datetime import date, datetime
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, TenantRow


class Plan(Base):
    """Limits that an operator gives to tenants by name; null is no limit."""

    __tablename__ = "plans"

    name: Mapped[str] = mapped_column(primary_key=True)
    requests_per_minute: Mapped[int | None] = mapped_column(BigInteger)
    concurrent_ingestions: Mapped[int | None] = mapped_column(BigInteger)
    documents: Mapped[int | None] = mapped_column(BigInteger)
    stored_bytes: Mapped[int | None] = mapped_column(BigInteger)
    model_tokens_per_month: Mapped[int | None] = mapped_column(BigInteger)
    updated_at: Mapped[CreatedAt]


class TenantTotals(Base, TenantRow):
    """What the tenant holds now."""

    __tablename__ = "tenant_totals"

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True)
    documents: Mapped[int] = mapped_column(BigInteger, server_default="0")
    stored_bytes: Mapped[int] = mapped_column(BigInteger, server_default="0")


class TenantMonth(Base, TenantRow):
    """Tokens of models that are not offline, sent and received, by calendar month of UTC."""

    __tablename__ = "tenant_months"

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True)
    month: Mapped[date] = mapped_column(primary_key=True)
    model_tokens: Mapped[int] = mapped_column(BigInteger)


class TenantTurn(Base, TenantRow):
    """When a worker last took up work of the tenant."""

    __tablename__ = "tenant_turns"

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True)
    engine: Mapped[str] = mapped_column(primary_key=True)
    last_turn: Mapped[datetime]
