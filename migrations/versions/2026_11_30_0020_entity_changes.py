"""What people do to entities and relations: the changes with their history, what undoes a merge, and edits that last."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.db.policies import APP_ROLE, ENGINE_ROLE, audit, fence_by_tenant

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

KINDS = (
    "merge", "undo", "split", "create_entity", "edit_entity", "delete_entity", "create_relation", "edit_relation",
    "delete_relation",
)  # fmt: skip
STATES = ("queued", "done", "failed", "undone")

# Changes that wait for a worker for longer than their message should take.
STALE_CHANGES = """
CREATE FUNCTION stale_entity_changes(requeue_after interval, max_rows int)
RETURNS TABLE (tenant_id uuid, workspace_id uuid, change_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT c.tenant_id, c.workspace_id, c.id
    FROM entity_changes c JOIN tenants t ON t.id = c.tenant_id AND t.status = 'active'
    JOIN workspaces w ON w.tenant_id = c.tenant_id AND w.id = c.workspace_id AND w.status = 'active'
   WHERE c.state = 'queued' AND c.created_at < now() - requeue_after
   ORDER BY c.created_at LIMIT max_rows
$$
"""


def quoted(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def place() -> list[sa.Column[object]]:
    return [
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
    ]


def of_workspace(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", "workspace_id"],
        ["workspaces.tenant_id", "workspaces.id"],
        name=op.f(f"fk_{table}_tenant_id_workspace_id"),
        ondelete="CASCADE",
    )


def create_changes() -> None:
    op.create_table(
        "entity_changes",
        *place(),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("number", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.TEXT(), nullable=False),
        sa.Column("state", sa.TEXT(), nullable=False),
        sa.Column("names", postgresql.ARRAY(sa.TEXT()), nullable=False, comment="Every entity that it concerns."),
        sa.Column("request", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("actor", sa.TEXT(), nullable=True),
        sa.Column("request_key", sa.LargeBinary(), nullable=True, comment="Digest of the caller's Idempotency-Key."),
        sa.Column("undoes", sa.Uuid(), nullable=True),
        sa.Column("error_code", sa.TEXT(), nullable=True),
        sa.Column("error_detail", sa.TEXT(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(f"kind IN ({quoted(KINDS)})", name=op.f("ck_entity_changes_kind")),
        sa.CheckConstraint(f"state IN ({quoted(STATES)})", name=op.f("ck_entity_changes_state")),
        of_workspace("entity_changes"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_entity_changes")),
    )
    op.create_index("ix_entity_changes_listed", "entity_changes", ["tenant_id", "workspace_id", "number"])
    op.create_index(
        "uq_entity_changes_request_key",
        "entity_changes",
        ["tenant_id", "workspace_id", "request_key"],
        unique=True,
        postgresql_where=sa.text("request_key IS NOT NULL"),
    )
    op.create_index(
        "ix_entity_changes_queued", "entity_changes", ["created_at"], postgresql_where=sa.text("state = 'queued'")
    )


def create_undo_records() -> None:
    op.create_table(
        "entity_undo_records",
        *place(),
        sa.Column("change_id", sa.Uuid(), nullable=False),
        sa.Column("sources", postgresql.ARRAY(sa.TEXT()), nullable=False),
        sa.Column("target", sa.TEXT(), nullable=False),
        sa.Column("aliases", postgresql.JSONB(astext_type=sa.Text()), nullable=False, comment="Rows as they were."),
        sa.Column("edits", postgresql.JSONB(astext_type=sa.Text()), nullable=False, comment="Rows as they were."),
        sa.Column("merged_edits", postgresql.JSONB(astext_type=sa.Text()), nullable=False, comment="As it left them."),
        sa.ForeignKeyConstraint(
            ["tenant_id", "change_id"],
            ["entity_changes.tenant_id", "entity_changes.id"],
            name=op.f("fk_entity_undo_records_tenant_id_change_id"),
            ondelete="CASCADE",
        ),
        of_workspace("entity_undo_records"),
        sa.PrimaryKeyConstraint("tenant_id", "change_id", name=op.f("pk_entity_undo_records")),
    )


def create_edits() -> None:
    op.create_table(
        "entity_edits",
        *place(),
        sa.Column("key", sa.LargeBinary(), nullable=False, comment="Digest of name and target."),
        sa.Column("name", sa.TEXT(), nullable=False),
        sa.Column("target", sa.TEXT(), nullable=True, comment="The other end of a relation."),
        sa.Column("fields", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("is_created", sa.Boolean(), nullable=False, comment="There because somebody said so."),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        of_workspace("entity_edits"),
        sa.PrimaryKeyConstraint("tenant_id", "workspace_id", "key", name=op.f("pk_entity_edits")),
    )


def create_splits() -> None:
    op.create_table(
        "entity_splits",
        *place(),
        sa.Column("key", sa.LargeBinary(), nullable=False, comment="Of the name that means several things."),
        sa.Column("version_id", sa.Uuid(), nullable=False),
        sa.Column("chunk_ordinal", sa.Integer(), nullable=False),
        sa.Column("target", sa.TEXT(), nullable=False, comment="What the name means in this chunk."),
        sa.Column("change_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "version_id", "chunk_ordinal"],
            ["chunks.tenant_id", "chunks.version_id", "chunks.ordinal"],
            name=op.f("fk_entity_splits_tenant_id_version_id_chunk_ordinal"),
            ondelete="CASCADE",
        ),
        of_workspace("entity_splits"),
        sa.PrimaryKeyConstraint(
            "tenant_id", "workspace_id", "key", "version_id", "chunk_ordinal", name=op.f("pk_entity_splits")
        ),
    )
    op.create_index(
        op.f("ix_entity_splits_tenant_id_version_id_chunk_ordinal"),
        "entity_splits",
        ["tenant_id", "version_id", "chunk_ordinal"],
    )


def upgrade() -> None:
    create_changes()
    create_splits()
    create_undo_records()
    create_edits()
    for table in ("entity_changes", "entity_undo_records", "entity_edits", "entity_splits"):
        for statement in fence_by_tenant(table):
            op.execute(statement)
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {ENGINE_ROLE}")
    op.execute(f"GRANT SELECT, INSERT, UPDATE ON entity_changes TO {APP_ROLE}")
    op.execute(f"GRANT SELECT ON entity_edits, entity_splits TO {APP_ROLE}")
    op.execute(audit("entity_changes", "id", "entity_change", "INSERT"))
    op.execute(audit("entity_edits", "name", "entity_edit"))
    # Which merge said so: only its own rows may go when it is undone.
    op.add_column("entity_aliases", sa.Column("change_id", sa.Uuid(), nullable=True))
    op.execute(STALE_CHANGES)
    signature = "stale_entity_changes(interval, int)"
    op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {APP_ROLE}")


def downgrade() -> None:
    op.execute("DROP FUNCTION stale_entity_changes(interval, int)")
    op.drop_column("entity_aliases", "change_id")
    for table in ("entity_splits", "entity_edits", "entity_undo_records", "entity_changes"):
        op.drop_table(table)
