"""The sweeper tells again of duplicates to be merged, and leaves changes alone that could not be put back."""

import sqlalchemy as sa
from alembic import op

from app.db.policies import APP_ROLE

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

STALE_DUPLICATES = """
CREATE FUNCTION stale_duplicates(requeue_after interval, max_rows int)
RETURNS TABLE (tenant_id uuid, workspace_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT w.tenant_id, w.id
    FROM workspaces w JOIN tenants t ON t.id = w.tenant_id AND t.status = 'active'
    JOIN corpus_versions c ON c.tenant_id = w.tenant_id AND c.workspace_id = w.id
   WHERE w.status = 'active' AND 'graph' = ANY (w.engines) AND w.settings ->> 'merge_duplicates_above' IS NOT NULL
     AND c.version > c.duplicates_version AND c.duplicates_sent_at < now() - requeue_after
     AND NOT EXISTS (SELECT 1 FROM index_states s WHERE s.tenant_id = w.tenant_id AND s.workspace_id = w.id
                      AND s.engine = 'graph' AND s.state IN ('queued', 'running'))
   ORDER BY row_number() OVER (PARTITION BY w.tenant_id ORDER BY c.duplicates_sent_at), c.duplicates_sent_at
   LIMIT max_rows
$$
"""
SIGNATURE = "stale_duplicates(interval, int)"

# As in 0031; {open} says which changes are open.
STALE_CHANGES = """
CREATE OR REPLACE FUNCTION stale_entity_changes(requeue_after interval, max_rows int)
RETURNS TABLE (tenant_id uuid, workspace_id uuid, change_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT c.tenant_id, c.workspace_id, c.id
    FROM entity_changes c JOIN tenants t ON t.id = c.tenant_id AND t.status = 'active'
    JOIN workspaces w ON w.tenant_id = c.tenant_id AND w.id = c.workspace_id AND w.status = 'active'
   WHERE {open} AND c.sent_at < now() - requeue_after
   ORDER BY row_number() OVER (PARTITION BY c.tenant_id ORDER BY c.sent_at), c.sent_at LIMIT max_rows
$$
"""
OPEN = "c.state IN ('queued', 'writing') AND (c.state = 'queued' OR c.put_back_attempts < 5)"
OPEN_BEFORE = "c.state IN ('queued', 'writing')"


def upgrade() -> None:
    op.add_column(
        "corpus_versions",
        sa.Column(
            "duplicates_version",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="As of which duplicates were merged without anybody looking.",
        ),
    )
    op.add_column(
        "corpus_versions",
        sa.Column("duplicates_sent_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
    )
    op.execute(STALE_DUPLICATES)
    op.execute(f"REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {SIGNATURE} TO {APP_ROLE}")
    op.add_column(
        "entity_changes",
        sa.Column(
            "put_back_attempts",
            sa.Integer(),
            server_default="0",
            nullable=False,
            comment="That ended with an error which another one will not change.",
        ),
    )
    op.execute(STALE_CHANGES.format(open=OPEN))


def downgrade() -> None:
    op.execute(STALE_CHANGES.format(open=OPEN_BEFORE))
    op.drop_column("entity_changes", "put_back_attempts")
    op.execute(f"DROP FUNCTION {SIGNATURE}")
    op.drop_column("corpus_versions", "duplicates_sent_at")
    op.drop_column("corpus_versions", "duplicates_version")
