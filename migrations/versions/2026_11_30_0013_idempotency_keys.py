"""Answers kept for requests that are sent again, and their end."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.db.policies import APP_ROLE, fence_by_tenant

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# Over all tenants, and only what has expired: it hands out nothing but how many there were.
FORGET = """
CREATE FUNCTION forget_idempotency_keys(max_rows int) RETURNS int
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH gone AS (
    DELETE FROM idempotency_keys k
     WHERE (k.tenant_id, k.caller, k.key, k.route) IN (
             SELECT e.tenant_id, e.caller, e.key, e.route FROM idempotency_keys e
              WHERE e.expires_at < now() LIMIT max_rows FOR UPDATE SKIP LOCKED)
    RETURNING 1)
  SELECT count(*)::int FROM gone
$$
"""


def upgrade() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("caller", sa.TEXT(), nullable=False),
        sa.Column("key", sa.TEXT(), nullable=False),
        sa.Column("route", sa.TEXT(), nullable=False),
        sa.Column("owner", sa.Uuid(), nullable=False),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("fingerprint", postgresql.BYTEA(), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("body_encrypted", postgresql.BYTEA(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_idempotency_keys_tenant_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "caller", "key", "route", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(op.f("ix_idempotency_keys_expires_at"), "idempotency_keys", ["expires_at"], unique=False)
    for statement in fence_by_tenant("idempotency_keys"):
        op.execute(statement)
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO {APP_ROLE}")
    op.execute(FORGET)
    op.execute("REVOKE ALL ON FUNCTION forget_idempotency_keys(int) FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION forget_idempotency_keys(int) TO {APP_ROLE}")


def downgrade() -> None:
    op.execute("DROP FUNCTION forget_idempotency_keys(int)")
    op.drop_index(op.f("ix_idempotency_keys_expires_at"), table_name="idempotency_keys")
    op.drop_table("idempotency_keys")
