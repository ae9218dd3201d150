"""Passages, the chunks that the graph engine gets, and what each chunk said of entities and relations."""

from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Identity, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, TenantRow, tenant_reference


class Passage(Base, TenantRow):
    """The unit of the lazy index, of `baseline` and of citations: an exact range of the version's text."""

    __tablename__ = "passages"
    __table_args__ = (
        tenant_reference("versions", "version_id"),
        UniqueConstraint("tenant_id", "version_id", "ordinal"),
        Index(None, "tenant_id", "workspace_id", "content_hash"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    workspace_id: Mapped[UUID]
    document_id: Mapped[UUID]
    version_id: Mapped[UUID]
    ordinal: Mapped[int]
    text: Mapped[str]
    tokens: Mapped[int]
    page_start: Mapped[int | None]
    page_end: Mapped[int | None]
    char_start: Mapped[int]
    char_end: Mapped[int]
    heading_path: Mapped[list[str]]
    content_hash: Mapped[bytes]


class Chunk(Base, TenantRow):
    """Consecutive passages, in the engine `{version}-chunk-{ordinal:03d}`; `error_code` says why extraction failed."""

    __tablename__ = "chunks"
    __table_args__ = (
        tenant_reference("versions", "version_id"),
        CheckConstraint("state IN ('pending', 'extracted', 'failed')", name="state"),
    )

    version_id: Mapped[UUID] = mapped_column(primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[UUID]
    first_passage: Mapped[int]
    last_passage: Mapped[int]
    tokens: Mapped[int]
    state: Mapped[str] = mapped_column(server_default="pending")
    error_code: Mapped[str | None]
    error_detail: Mapped[str | None]


class Mention(Base, TenantRow):
    """What one chunk said of one entity (`target` null) or one relation (`name` to `target`)."""

    __tablename__ = "mentions"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "version_id", "chunk_ordinal"],
            ["chunks.tenant_id", "chunks.version_id", "chunks.ordinal"],
            ondelete="CASCADE",
        ),
        Index(None, "tenant_id", "version_id", "chunk_ordinal"),
        # Names may be longer than a btree key may be, so they are looked up by a digest.
        Index("ix_mentions_name", "tenant_id", "workspace_id", text("md5(name)")),
        Index(
            "ix_mentions_target", "tenant_id", "workspace_id", text("md5(target)"),
            postgresql_where=text("target IS NOT NULL"),
        ),
    )  # fmt: skip

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    workspace_id: Mapped[UUID]
    version_id: Mapped[UUID]
    chunk_ordinal: Mapped[int]
    name: Mapped[str]
    target: Mapped[str | None]
    type: Mapped[str | None]
    description: Mapped[str]
    keywords: Mapped[str | None]
