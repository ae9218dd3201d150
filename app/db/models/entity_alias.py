"""Names that mean an entity of a workspace's graph."""

from uuid import UUID

from sqlalchemy import CheckConstraint, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, TenantRow, tenant_reference


class EntityAlias(Base, TenantRow):
    """`key` is a digest of the name without case and width; the row of an entity itself is its own `spelling`."""

    __tablename__ = "entity_aliases"
    __table_args__ = (
        tenant_reference("workspaces", "workspace_id"),
        CheckConstraint("source IN ('merge', 'manual', 'spelling')", name="source"),
        Index(
            "ix_entity_aliases_listed",
            "tenant_id",
            "workspace_id",
            postgresql_where=text("source <> 'spelling'"),
        ),
    )

    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    key: Mapped[bytes] = mapped_column(primary_key=True)
    alias: Mapped[str] = mapped_column(comment="The name as it was written.")
    target: Mapped[str] = mapped_column(comment="What it means; may be an alias again.")
    target_key: Mapped[bytes]
    source: Mapped[str]
    created_at: Mapped[CreatedAt]
    change_id: Mapped[UUID | None]
