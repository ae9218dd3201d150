"""Changes of entities that wait are sent again with pauses, and are given up after some attempts."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

# Changes that wait for a worker for longer than their last message should take, by when that was sent.
STALE_CHANGES = """
CREATE OR REPLACE FUNCTION stale_entity_changes(requeue_after interval, max_rows int)
RETURNS TABLE (tenant_id uuid, workspace_id uuid, change_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT c.tenant_id, c.workspace_id, c.id
    FROM entity_changes c JOIN tenants t ON t.id = c.tenant_id AND t.status = 'active'
    JOIN workspaces w ON w.tenant_id = c.tenant_id AND w.id = c.workspace_id AND w.status = 'active'
   WHERE c.state = 'queued' AND c.{sent_at} < now() - requeue_after
   ORDER BY c.{sent_at} LIMIT max_rows
$$
"""


def index_queued(column: str) -> None:
    op.create_index(
        "ix_entity_changes_queued", "entity_changes", [column], postgresql_where=sa.text("state = 'queued'")
    )


def upgrade() -> None:
    op.add_column(
        "entity_changes",
        sa.Column("sent_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
    )
    op.add_column("entity_changes", sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.drop_index("ix_entity_changes_queued", "entity_changes")
    index_queued("sent_at")
    op.execute(STALE_CHANGES.format(sent_at="sent_at"))


def downgrade() -> None:
    op.execute(STALE_CHANGES.format(sent_at="created_at"))
    op.drop_index("ix_entity_changes_queued", "entity_changes")
    index_queued("created_at")
    op.drop_column("entity_changes", "attempts")
    op.drop_column("entity_changes", "sent_at")
