"""Tenants, model profiles, workspaces, documents and their versions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model_profiles",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.TEXT(), nullable=False),
        sa.Column("role", sa.TEXT(), nullable=False),
        sa.Column("provider", sa.TEXT(), nullable=False),
        sa.Column("base_url", sa.TEXT(), nullable=True),
        sa.Column("model", sa.TEXT(), nullable=False),
        sa.Column("api_key_encrypted", postgresql.BYTEA(), nullable=True),
        sa.Column("dimension", sa.Integer(), nullable=True),
        sa.Column("table_suffix", sa.TEXT(), nullable=True),
        sa.Column("max_concurrency", sa.Integer(), server_default="8", nullable=False),
        sa.Column("tokens_per_minute", sa.Integer(), nullable=True),
        sa.Column("timeout_seconds", sa.Double(), server_default="120", nullable=False),
        sa.Column("max_retries", sa.Integer(), server_default="4", nullable=False),
        sa.Column("price_input", sa.Double(), nullable=True, comment="Money for a million input tokens."),
        sa.Column("price_output", sa.Double(), nullable=True, comment="Money for a million output tokens."),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("(role = 'embedding') = (dimension IS NOT NULL)", name=op.f("ck_model_profiles_dimension")),
        sa.CheckConstraint(
            "(role = 'embedding') = (table_suffix IS NOT NULL)", name=op.f("ck_model_profiles_table_suffix")
        ),
        sa.CheckConstraint("provider IN ('openai', 'offline')", name=op.f("ck_model_profiles_provider")),
        sa.CheckConstraint("role IN ('chat', 'embedding', 'rerank')", name=op.f("ck_model_profiles_role")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_profiles")),
        sa.UniqueConstraint("name", name=op.f("uq_model_profiles_name")),
        sa.UniqueConstraint("table_suffix", name=op.f("uq_model_profiles_table_suffix")),
    )
    op.create_table(
        "tenants",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.TEXT(), nullable=False),
        sa.Column("status", sa.TEXT(), server_default="active", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("status IN ('active', 'suspended')", name=op.f("ck_tenants_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenants")),
        sa.UniqueConstraint("name", name=op.f("uq_tenants_name")),
    )
    op.create_table(
        "usage_events",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=True),
        sa.Column("version_id", sa.Uuid(), nullable=True),
        sa.Column("profile_id", sa.Uuid(), nullable=False),
        sa.Column("purpose", sa.TEXT(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("tokens_in", sa.BigInteger(), nullable=False),
        sa.Column("tokens_out", sa.BigInteger(), nullable=False),
        sa.Column("is_estimated", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["profile_id"], ["model_profiles.id"], name=op.f("fk_usage_events_profile_id")),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_usage_events_tenant_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_usage_events")),
    )
    op.create_index(
        op.f("ix_usage_events_tenant_id_workspace_id_created_at"),
        "usage_events",
        ["tenant_id", "workspace_id", "created_at"],
        unique=False,
    )
    op.create_table(
        "workspaces",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.TEXT(), nullable=False),
        sa.Column("engines", postgresql.ARRAY(sa.TEXT()), nullable=False),
        sa.Column("default_mode", sa.TEXT(), nullable=False),
        sa.Column("settings", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("index_profile_hash", sa.TEXT(), nullable=False),
        sa.Column("chat_profile_id", sa.Uuid(), nullable=True),
        sa.Column("embedding_profile_id", sa.Uuid(), nullable=False),
        sa.Column("status", sa.TEXT(), server_default="active", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.CheckConstraint(
            "engines <@ ARRAY['lazy', 'graph'] AND 'lazy' = ANY (engines)", name=op.f("ck_workspaces_engines")
        ),
        sa.CheckConstraint("status IN ('active', 'deleting')", name=op.f("ck_workspaces_status")),
        sa.ForeignKeyConstraint(["chat_profile_id"], ["model_profiles.id"], name=op.f("fk_workspaces_chat_profile_id")),
        sa.ForeignKeyConstraint(
            ["embedding_profile_id"], ["model_profiles.id"], name=op.f("fk_workspaces_embedding_profile_id")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_workspaces_tenant_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_workspaces")),
        sa.UniqueConstraint("number", name=op.f("uq_workspaces_number")),
        sa.UniqueConstraint("tenant_id", "name", name=op.f("uq_workspaces_tenant_id_name")),
    )
    op.create_table(
        "api_keys",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=True),
        sa.Column("name", sa.TEXT(), nullable=False),
        sa.Column("prefix", sa.TEXT(), nullable=False),
        sa.Column("secret_hash", postgresql.BYTEA(), nullable=False),
        sa.Column("role", sa.TEXT(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.CheckConstraint("role IN ('reader', 'editor', 'admin')", name=op.f("ck_api_keys_role")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_api_keys_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_api_keys_tenant_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("prefix", name=op.f("uq_api_keys_prefix")),
    )
    op.create_table(
        "blobs",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.TEXT(), nullable=False),
        sa.Column("sha256", postgresql.BYTEA(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_blobs_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_blobs")),
        sa.UniqueConstraint("key", name=op.f("uq_blobs_key")),
    )
    op.create_table(
        "corpus_versions",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_corpus_versions_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "workspace_id", name=op.f("pk_corpus_versions")),
    )
    op.create_table(
        "documents",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("title", sa.TEXT(), nullable=False),
        sa.Column("filename", sa.TEXT(), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False),
        sa.Column("deleting_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_documents_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_documents")),
    )
    op.create_index(
        "ix_documents_deleting",
        "documents",
        ["deleting_at"],
        unique=False,
        postgresql_where=sa.text("deleting_at IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_documents_tenant_id_workspace_id_created_at_id"),
        "documents",
        ["tenant_id", "workspace_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "workspace_leases",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("owner", sa.TEXT(), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("unit_id", sa.Uuid(), nullable=True, comment="The last unit of work that committed."),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_workspace_leases_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "workspace_id", name=op.f("pk_workspace_leases")),
    )
    op.create_table(
        "versions",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("blob_id", sa.Uuid(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("media_type", sa.TEXT(), nullable=False),
        sa.Column("language", sa.TEXT(), nullable=True),
        sa.Column("page_count", sa.Integer(), nullable=True),
        sa.Column("char_count", sa.Integer(), nullable=True),
        sa.Column("passage_count", sa.Integer(), nullable=True),
        sa.Column("chunk_count", sa.Integer(), nullable=True),
        sa.Column("index_profile_hash", sa.TEXT(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "blob_id"],
            ["blobs.tenant_id", "blobs.id"],
            name=op.f("fk_versions_tenant_id_blob_id"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "document_id"],
            ["documents.tenant_id", "documents.id"],
            name=op.f("fk_versions_tenant_id_document_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_versions_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_versions")),
        sa.UniqueConstraint(
            "tenant_id", "document_id", "ordinal", name=op.f("uq_versions_tenant_id_document_id_ordinal")
        ),
    )
    op.create_index(op.f("ix_versions_tenant_id_blob_id"), "versions", ["tenant_id", "blob_id"], unique=False)
    op.create_index(op.f("ix_versions_tenant_id_workspace_id"), "versions", ["tenant_id", "workspace_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_versions_tenant_id_workspace_id"), table_name="versions")
    op.drop_index(op.f("ix_versions_tenant_id_blob_id"), table_name="versions")
    op.drop_table("versions")
    op.drop_table("workspace_leases")
    op.drop_index(op.f("ix_documents_tenant_id_workspace_id_created_at_id"), table_name="documents")
    op.drop_table("documents")
    op.drop_table("corpus_versions")
    op.drop_table("blobs")
    op.drop_table("api_keys")
    op.drop_table("workspaces")
    op.drop_index(op.f("ix_usage_events_tenant_id_workspace_id_created_at"), table_name="usage_events")
    op.drop_table("usage_events")
    op.drop_table("tenants")
    op.drop_table("model_profiles")
