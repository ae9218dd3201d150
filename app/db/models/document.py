"""Documents, their versions, originals, index states and the pointers to what is live."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Index, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, TenantEntity, TenantRow, tenant_reference


class Blob(Base, TenantEntity):
    """An original in object storage, written there before this row."""

    __tablename__ = "blobs"
    __table_args__ = (
        tenant_reference("workspaces", "workspace_id"),
        Index(None, "tenant_id", "workspace_id", "sha256"),
    )

    workspace_id: Mapped[UUID]
    key: Mapped[str] = mapped_column(unique=True)
    sha256: Mapped[bytes]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[CreatedAt]


class Document(Base, TenantEntity):
    """What the user uploaded; its id stays the same through replacements."""

    __tablename__ = "documents"
    __table_args__ = (
        tenant_reference("workspaces", "workspace_id"),
        Index(None, "tenant_id", "workspace_id", "created_at", "id"),
        Index("ix_documents_deleting", "deleting_at", postgresql_where="deleting_at IS NOT NULL"),
    )

    workspace_id: Mapped[UUID]
    title: Mapped[str]
    filename: Mapped[str]
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata", JSONB, server_default="{}")
    deleting_at: Mapped[datetime | None]
    created_at: Mapped[CreatedAt]
    updated_at: Mapped[CreatedAt]


class Version(Base, TenantEntity):
    """One ingested content of a document. Its id is the engine's document id."""

    __tablename__ = "versions"
    __table_args__ = (
        tenant_reference("workspaces", "workspace_id"),
        tenant_reference("documents", "document_id"),
        tenant_reference("blobs", "blob_id", ondelete="RESTRICT"),
        UniqueConstraint("tenant_id", "document_id", "ordinal"),
        # Of documents that were replaced: the sweeper looks for versions that nobody has removed.
        Index("ix_versions_later", "tenant_id", "document_id", "ordinal", postgresql_where="ordinal > 1"),
        Index(None, "tenant_id", "workspace_id"),
        Index(None, "tenant_id", "blob_id"),
    )

    workspace_id: Mapped[UUID]
    document_id: Mapped[UUID]
    blob_id: Mapped[UUID]
    ordinal: Mapped[int]
    media_type: Mapped[str]
    language: Mapped[str | None]
    page_count: Mapped[int | None]
    char_count: Mapped[int | None]
    passage_count: Mapped[int | None]
    chunk_count: Mapped[int | None]
    index_profile_hash: Mapped[str]
    created_at: Mapped[CreatedAt]


class IndexState(Base, TenantRow):
    """How far one engine is with one version. Each transition is a guarded UPDATE in app/domain/ingestion."""

    __tablename__ = "index_states"
    __table_args__ = (
        tenant_reference("versions", "version_id"),
        CheckConstraint("engine IN ('lazy', 'graph')", name="engine"),
        CheckConstraint("state IN ('queued', 'running', 'ready', 'partial', 'failed', 'cancelled')", name="state"),
        CheckConstraint("cleanliness IN ('clean', 'purging')", name="cleanliness"),
        Index("ix_index_states_open", "state", "changed_at", postgresql_where="state IN ('queued', 'running')"),
        Index("ix_index_states_turn", "engine", "tenant_id", "queued_at", postgresql_where="state = 'queued'"),
        Index("ix_index_states_running", "tenant_id", "engine", postgresql_where="state = 'running'"),
        Index("ix_index_states_purging", "changed_at", postgresql_where="cleanliness = 'purging'"),
        Index(None, "tenant_id", "workspace_id"),
    )

    version_id: Mapped[UUID] = mapped_column(primary_key=True)
    engine: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[UUID]
    state: Mapped[str] = mapped_column(server_default="queued")
    cleanliness: Mapped[str] = mapped_column(server_default="clean")
    stage: Mapped[str] = mapped_column(server_default="queued")
    attempts: Mapped[int] = mapped_column(server_default="0")
    chunks_done: Mapped[int] = mapped_column(server_default="0")
    chunks_total: Mapped[int | None]
    error_code: Mapped[str | None]
    error_detail: Mapped[str | None]
    stage_ms: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    model_calls: Mapped[int] = mapped_column(server_default="0")
    tokens_in: Mapped[int] = mapped_column(BigInteger, server_default="0")
    tokens_out: Mapped[int] = mapped_column(BigInteger, server_default="0")
    lease_owner: Mapped[str | None]
    lease_expires_at: Mapped[datetime | None]
    queued_at: Mapped[CreatedAt]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    changed_at: Mapped[CreatedAt]


class LiveVersion(Base, TenantRow):
    """Which version of a document an engine answers from; absent while none is trusted."""

    __tablename__ = "live_versions"
    __table_args__ = (
        tenant_reference("documents", "document_id"),
        tenant_reference("versions", "version_id"),
        CheckConstraint("engine IN ('lazy', 'graph')", name="engine"),
        UniqueConstraint("tenant_id", "engine", "version_id"),
        Index(None, "tenant_id", "workspace_id", "engine"),
    )

    document_id: Mapped[UUID] = mapped_column(primary_key=True)
    engine: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[UUID]
    version_id: Mapped[UUID]
