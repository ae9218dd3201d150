"""What people did to entities and relations, and what they said of them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Identity, Index, func, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, TenantEntity, TenantRow, tenant_reference

CHANGE_KINDS = (
    "merge", "undo", "split", "create_entity", "edit_entity", "delete_entity", "create_relation", "edit_relation",
    "delete_relation", "add_alias", "remove_alias",
)  # fmt: skip


class EntityChange(Base, TenantEntity):
    """One change, done or to be done; `undoes` names the one that it took back.

    It is `writing` while it changes a graph store without transactions: what is left so by a process that died is a
    mixture, until it is put back.
    """

    __tablename__ = "entity_changes"
    __table_args__ = (
        tenant_reference("workspaces", "workspace_id"),
        CheckConstraint(f"kind IN ({', '.join(repr(kind) for kind in CHANGE_KINDS)})", name="kind"),
        CheckConstraint("state IN ('queued', 'done', 'failed', 'undone', 'writing')", name="state"),
        Index("ix_entity_changes_listed", "tenant_id", "workspace_id", "number"),
        Index(
            "uq_entity_changes_request_key",
            "tenant_id",
            "workspace_id",
            "request_key",
            unique=True,
            postgresql_where=text("request_key IS NOT NULL"),
        ),
        Index("ix_entity_changes_queued", "sent_at", postgresql_where=text("state IN ('queued', 'writing')")),
    )

    workspace_id: Mapped[UUID]
    number: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    kind: Mapped[str]
    state: Mapped[str]
    names: Mapped[list[str]] = mapped_column(comment="Every entity that it concerns.")
    request: Mapped[dict[str, Any]]
    actor: Mapped[str | None]
    request_key: Mapped[bytes | None] = mapped_column(comment="Digest of the caller's Idempotency-Key.")
    undoes: Mapped[UUID | None]
    error_code: Mapped[str | None]
    error_detail: Mapped[str | None]
    created_at: Mapped[CreatedAt]
    finished_at: Mapped[datetime | None]
    # Of a queued one: when its last message was sent, and how often a worker has begun it.
    sent_at: Mapped[CreatedAt]
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    put_back_attempts: Mapped[int] = mapped_column(
        server_default="0", comment="That ended with an error which another one will not change."
    )
    # When a name that it told went with the last document that spoke of it.
    forgotten_at: Mapped[datetime | None]


class EntityUndoRecord(Base, TenantRow):
    """What a merge has to leave behind so that it can be taken back."""

    __tablename__ = "entity_undo_records"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "change_id"], ["entity_changes.tenant_id", "entity_changes.id"], ondelete="CASCADE"
        ),
        tenant_reference("workspaces", "workspace_id"),
    )

    change_id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[UUID]
    sources: Mapped[list[str]]
    target: Mapped[str]
    aliases: Mapped[dict[str, Any]] = mapped_column(comment="Rows as they were.")
    edits: Mapped[dict[str, Any]] = mapped_column(comment="Rows as they were.")
    merged_edits: Mapped[dict[str, Any]] = mapped_column(comment="As it left them.")


class EntityEdit(Base, TenantRow):
    """What a person says of an entity, or of a relation: it holds whatever documents say."""

    __tablename__ = "entity_edits"
    __table_args__ = (tenant_reference("workspaces", "workspace_id"),)

    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    key: Mapped[bytes] = mapped_column(primary_key=True, comment="Digest of name and target.")
    name: Mapped[str]
    target: Mapped[str | None] = mapped_column(comment="The other end of a relation.")
    fields: Mapped[dict[str, Any]]
    is_created: Mapped[bool] = mapped_column(comment="There because somebody said so.")
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())


class EntitySplit(Base, TenantRow):
    """What a name that means several things means in one chunk."""

    __tablename__ = "entity_splits"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "version_id", "chunk_ordinal"],
            ["chunks.tenant_id", "chunks.version_id", "chunks.ordinal"],
            ondelete="CASCADE",
        ),
        tenant_reference("workspaces", "workspace_id"),
        Index(None, "tenant_id", "version_id", "chunk_ordinal"),
    )

    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    key: Mapped[bytes] = mapped_column(primary_key=True, comment="Of the name that means several things.")
    version_id: Mapped[UUID] = mapped_column(primary_key=True)
    chunk_ordinal: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    target: Mapped[str] = mapped_column(comment="What the name means in this chunk.")
    change_id: Mapped[UUID]


class EntityName(Base, TenantRow):
    """The whole of a name that is too long for the engine's tables."""

    __tablename__ = "entity_names"
    __table_args__ = (tenant_reference("workspaces", "workspace_id"),)

    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True, comment="As the engine keeps it: a beginning and a digest.")
    whole: Mapped[str] = mapped_column(comment="As it was said.")


class DuplicateDecision(Base, TenantRow):
    """Two names that somebody has looked at, in code point order: the same thing, or different ones."""

    __tablename__ = "duplicate_decisions"
    __table_args__ = (tenant_reference("workspaces", "workspace_id"),)

    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    pair: Mapped[bytes] = mapped_column(primary_key=True, comment="Digest of both names.")
    one: Mapped[str]
    other: Mapped[str]
    is_same: Mapped[bool] = mapped_column(server_default=text("false"))
    created_at: Mapped[CreatedAt]
