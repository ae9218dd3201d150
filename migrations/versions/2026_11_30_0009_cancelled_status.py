"""A document of which anything was called off is `cancelled`, whatever else of it is ready."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

DOCUMENT_STATUSES = """
CREATE OR REPLACE VIEW document_statuses WITH (security_invoker = true) AS
SELECT d.tenant_id, d.workspace_id, d.id AS document_id, v.id AS version_id,
       CASE
         WHEN d.deleting_at IS NOT NULL THEN 'deleting'
         WHEN s.is_open THEN 'processing'
         WHEN s.all_ready THEN 'ready'
         WHEN s.{cancelled} THEN 'cancelled'
         WHEN s.any_usable THEN 'partial'
         ELSE 'failed'
       END AS status
  FROM documents d
  JOIN LATERAL (SELECT id FROM versions WHERE tenant_id = d.tenant_id AND document_id = d.id
                ORDER BY ordinal DESC LIMIT 1) v ON true
  JOIN LATERAL (SELECT bool_or(state IN ('queued', 'running') OR cleanliness = 'purging') AS is_open,
                       bool_and(state = 'ready') AS all_ready,
                       {rule}(state = 'cancelled') AS {cancelled},
                       bool_or(state IN ('ready', 'partial')) AS any_usable
                  FROM index_states WHERE tenant_id = d.tenant_id AND version_id = v.id) s ON true
"""


def upgrade() -> None:
    op.execute(DOCUMENT_STATUSES.format(cancelled="any_cancelled", rule="bool_or"))


def downgrade() -> None:
    op.execute(DOCUMENT_STATUSES.format(cancelled="all_cancelled", rule="bool_and"))
