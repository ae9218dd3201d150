"""What belongs to a version: chunks, index states, live pointers, passages and mentions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001b"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "chunks",
        sa.Column("version_id", sa.Uuid(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("first_passage", sa.Integer(), nullable=False),
        sa.Column("last_passage", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("state", sa.TEXT(), server_default="pending", nullable=False),
        sa.Column("error_code", sa.TEXT(), nullable=True),
        sa.Column("error_detail", sa.TEXT(), nullable=True),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.CheckConstraint("state IN ('pending', 'extracted', 'failed')", name=op.f("ck_chunks_state")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "version_id"],
            ["versions.tenant_id", "versions.id"],
            name=op.f("fk_chunks_tenant_id_version_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "version_id", "ordinal", name=op.f("pk_chunks")),
    )
    op.create_table(
        "index_states",
        sa.Column("version_id", sa.Uuid(), nullable=False),
        sa.Column("engine", sa.TEXT(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.TEXT(), server_default="queued", nullable=False),
        sa.Column("cleanliness", sa.TEXT(), server_default="clean", nullable=False),
        sa.Column("stage", sa.TEXT(), server_default="queued", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("chunks_done", sa.Integer(), server_default="0", nullable=False),
        sa.Column("chunks_total", sa.Integer(), nullable=True),
        sa.Column("error_code", sa.TEXT(), nullable=True),
        sa.Column("error_detail", sa.TEXT(), nullable=True),
        sa.Column("stage_ms", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False),
        sa.Column("model_calls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tokens_in", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tokens_out", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("lease_owner", sa.TEXT(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("queued_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.CheckConstraint("cleanliness IN ('clean', 'purging')", name=op.f("ck_index_states_cleanliness")),
        sa.CheckConstraint("engine IN ('lazy', 'graph')", name=op.f("ck_index_states_engine")),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'ready', 'partial', 'failed', 'cancelled')",
            name=op.f("ck_index_states_state"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "version_id"],
            ["versions.tenant_id", "versions.id"],
            name=op.f("fk_index_states_tenant_id_version_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "version_id", "engine", name=op.f("pk_index_states")),
    )
    op.create_index(
        "ix_index_states_open",
        "index_states",
        ["state", "changed_at"],
        unique=False,
        postgresql_where="state IN ('queued', 'running')",
    )
    op.create_index(
        "ix_index_states_purging",
        "index_states",
        ["changed_at"],
        unique=False,
        postgresql_where="cleanliness = 'purging'",
    )
    op.create_index(
        op.f("ix_index_states_tenant_id_workspace_id"), "index_states", ["tenant_id", "workspace_id"], unique=False
    )
    op.create_table(
        "live_versions",
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("engine", sa.TEXT(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("version_id", sa.Uuid(), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.CheckConstraint("engine IN ('lazy', 'graph')", name=op.f("ck_live_versions_engine")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "document_id"],
            ["documents.tenant_id", "documents.id"],
            name=op.f("fk_live_versions_tenant_id_document_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "version_id"],
            ["versions.tenant_id", "versions.id"],
            name=op.f("fk_live_versions_tenant_id_version_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "document_id", "engine", name=op.f("pk_live_versions")),
        sa.UniqueConstraint(
            "tenant_id", "engine", "version_id", name=op.f("uq_live_versions_tenant_id_engine_version_id")
        ),
    )
    op.create_index(
        op.f("ix_live_versions_tenant_id_workspace_id_engine"),
        "live_versions",
        ["tenant_id", "workspace_id", "engine"],
        unique=False,
    )
    op.create_table(
        "passages",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("version_id", sa.Uuid(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("text", sa.TEXT(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("page_start", sa.Integer(), nullable=True),
        sa.Column("page_end", sa.Integer(), nullable=True),
        sa.Column("char_start", sa.Integer(), nullable=False),
        sa.Column("char_end", sa.Integer(), nullable=False),
        sa.Column("heading_path", postgresql.ARRAY(sa.TEXT()), nullable=False),
        sa.Column("content_hash", postgresql.BYTEA(), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "version_id"],
            ["versions.tenant_id", "versions.id"],
            name=op.f("fk_passages_tenant_id_version_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_passages")),
        sa.UniqueConstraint(
            "tenant_id", "version_id", "ordinal", name=op.f("uq_passages_tenant_id_version_id_ordinal")
        ),
    )
    op.create_index(
        op.f("ix_passages_tenant_id_workspace_id_content_hash"),
        "passages",
        ["tenant_id", "workspace_id", "content_hash"],
        unique=False,
    )
    op.create_table(
        "mentions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("version_id", sa.Uuid(), nullable=False),
        sa.Column("chunk_ordinal", sa.Integer(), nullable=False),
        sa.Column("name", sa.TEXT(), nullable=False),
        sa.Column("target", sa.TEXT(), nullable=True),
        sa.Column("type", sa.TEXT(), nullable=True),
        sa.Column("description", sa.TEXT(), nullable=False),
        sa.Column("keywords", sa.TEXT(), nullable=True),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "version_id", "chunk_ordinal"],
            ["chunks.tenant_id", "chunks.version_id", "chunks.ordinal"],
            name=op.f("fk_mentions_tenant_id_version_id_chunk_ordinal"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_mentions")),
    )
    op.create_index(
        "ix_mentions_name", "mentions", ["tenant_id", "workspace_id", sa.literal_column("md5(name)")], unique=False
    )
    op.create_index(
        op.f("ix_mentions_tenant_id_version_id_chunk_ordinal"),
        "mentions",
        ["tenant_id", "version_id", "chunk_ordinal"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_mentions_tenant_id_version_id_chunk_ordinal"), table_name="mentions")
    op.drop_index("ix_mentions_name", table_name="mentions")
    op.drop_table("mentions")
    op.drop_index(op.f("ix_passages_tenant_id_workspace_id_content_hash"), table_name="passages")
    op.drop_table("passages")
    op.drop_index(op.f("ix_live_versions_tenant_id_workspace_id_engine"), table_name="live_versions")
    op.drop_table("live_versions")
    op.drop_index(op.f("ix_index_states_tenant_id_workspace_id"), table_name="index_states")
    op.drop_index("ix_index_states_purging", table_name="index_states", postgresql_where="cleanliness = 'purging'")
    op.drop_index("ix_index_states_open", table_name="index_states", postgresql_where="state IN ('queued', 'running')")
    op.drop_table("index_states")
    op.drop_table("chunks")
