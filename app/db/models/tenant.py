"""Tenants and their API keys."""

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import CheckConstraint, ForeignKey, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, TenantEntity, tenant_reference


class Tenant(Base):
    """A customer of the SaaS that runs Trellis."""

    __tablename__ = "tenants"
    __table_args__ = (CheckConstraint("status IN ('active', 'suspended', 'deleting')", name="status"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4, server_default=text("gen_random_uuid()"))
    name: Mapped[str] = mapped_column(unique=True)
    status: Mapped[str] = mapped_column(server_default="active")
    plan: Mapped[str | None] = mapped_column(ForeignKey("plans.name"))
    created_at: Mapped[CreatedAt]


class ApiKey(Base, TenantEntity):
    """A key is found by its public prefix and verified by the hash of its secret; the secret itself is never stored."""

    __tablename__ = "api_keys"
    __table_args__ = (
        tenant_reference("workspaces", "workspace_id"),
        CheckConstraint("role IN ('reader', 'editor', 'admin')", name="role"),
    )

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True)
    workspace_id: Mapped[UUID | None]
    name: Mapped[str]
    prefix: Mapped[str] = mapped_column(unique=True)
    secret_hash: Mapped[bytes]
    role: Mapped[str]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    created_at: Mapped[CreatedAt]


class TenantDeletion(Base):
    """That an operator had a tenant deleted. It outlives the tenant, as the proof that nothing of it is left."""

    __tablename__ = "tenant_deletions"

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    workspaces: Mapped[dict[str, Any]]  # number by id, of all it had: what the engines' tables know it by
    requested_at: Mapped[CreatedAt]
    changed_at: Mapped[datetime | None]  # when the removal was last worked on
    finished_at: Mapped[datetime | None]
    proof: Mapped[dict[str, Any] | None]  # rows left by table and column, and objects left; all 0
