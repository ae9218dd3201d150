"""Workspaces, and the two small rows beside each that writers touch: its corpus version and its write lease."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, SmallInteger, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, validates

from app.db.base import Base, CreatedAt, TenantEntity, TenantRow, tenant_reference
from app.text.slugs import slug


class Workspace(Base, TenantEntity):
    """A corpus, and the unit of isolation of the engines. `number` is its short key in posting tables."""

    __tablename__ = "workspaces"
    __table_args__ = (
        UniqueConstraint("tenant_id", "name"),
        CheckConstraint("engines <@ ARRAY['lazy', 'graph'] AND 'lazy' = ANY (engines)", name="engines"),
        CheckConstraint("status IN ('active', 'deleting')", name="status"),
        CheckConstraint("graph_store IN ('table', 'age')", name="graph_store"),
    )

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id", ondelete="RESTRICT"), primary_key=True)
    number: Mapped[int] = mapped_column(Identity(always=True), unique=True)
    name: Mapped[str]
    slug: Mapped[str] = mapped_column(
        server_default="", comment="Made of its name; empty where an earlier release made the row."
    )
    engines: Mapped[list[str]]
    graph_store: Mapped[str] = mapped_column(server_default="table")
    default_mode: Mapped[str]
    settings: Mapped[dict[str, Any]]
    index_profile_hash: Mapped[str]
    chat_profile_id: Mapped[UUID | None] = mapped_column(ForeignKey("model_profiles.id"))
    rerank_profile_id: Mapped[UUID | None] = mapped_column(ForeignKey("model_profiles.id"))
    embedding_profile_id: Mapped[UUID] = mapped_column(ForeignKey("model_profiles.id"))
    status: Mapped[str] = mapped_column(server_default="active")
    created_at: Mapped[CreatedAt]
    updated_at: Mapped[CreatedAt]

    @validates("name")
    def _make_slug(self, _field: str, name: str) -> str:
        self.slug = slug(name)
        return name


class CorpusVersion(Base, TenantRow):
    """A counter that moves in every transaction that changes what a query of the workspace may see."""

    __tablename__ = "corpus_versions"
    __table_args__ = (tenant_reference("workspaces", "workspace_id"),)

    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(BigInteger, server_default="0")
    duplicates_version: Mapped[int] = mapped_column(
        BigInteger, server_default="0", comment="As of which duplicates were merged without anybody looking."
    )
    duplicates_sent_at: Mapped[CreatedAt]
    themes_version: Mapped[int] = mapped_column(
        BigInteger, server_default="0", comment="As of which its themes were looked at."
    )
    are_themes_asked: Mapped[bool] = mapped_column(server_default="false")
    themes_asked_at: Mapped[datetime | None]
    themes_sent_at: Mapped[CreatedAt]
    themes_tries: Mapped[int] = mapped_column(
        SmallInteger, server_default="0", comment="Builds that began since the last one that came to an end."
    )


class WorkspaceLease(Base, TenantRow):
    """The right to write the workspace's graph. The epoch only grows, so a holder that slept past its expiry is fenced."""

    __tablename__ = "workspace_leases"
    __table_args__ = (tenant_reference("workspaces", "workspace_id"),)

    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    owner: Mapped[str | None]
    expires_at: Mapped[datetime | None]
    epoch: Mapped[int] = mapped_column(BigInteger, server_default="0")
    unit_id: Mapped[UUID | None] = mapped_column(comment="The last unit of work that committed.")
