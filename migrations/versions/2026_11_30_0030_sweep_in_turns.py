"""The sweeper looks at the lost work of tenants in turns: one with thousands of rows does not hide another's."""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

# As in 0011; {lease}, {changed} and so on say in what order, of each kind, the first `max_rows` are taken.
STALE_WORK = """
CREATE OR REPLACE FUNCTION stale_work(requeue_after interval, max_rows int)
RETURNS TABLE (kind text, tenant_id uuid, workspace_id uuid, subject_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH active AS (SELECT t.id FROM tenants t WHERE t.status = 'active')
  (SELECT 'expired_' || s.engine, s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
    WHERE s.state = 'running' AND s.lease_expires_at < now()
    ORDER BY {lease} LIMIT max_rows)
  UNION ALL
  (SELECT 'queued_lazy', s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
    WHERE s.state = 'queued' AND s.engine = 'lazy' AND s.changed_at < now() - requeue_after
    ORDER BY {changed} LIMIT max_rows)
  UNION ALL
  (SELECT 'queued_graph', s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
     JOIN index_states lazy ON lazy.tenant_id = s.tenant_id AND lazy.version_id = s.version_id
                           AND lazy.engine = 'lazy' AND lazy.state = 'ready'
    WHERE s.state = 'queued' AND s.engine = 'graph' AND s.changed_at < now() - requeue_after
    ORDER BY {changed} LIMIT max_rows)
  UNION ALL
  (SELECT 'purging', s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
    WHERE s.cleanliness = 'purging' AND s.state NOT IN ('queued', 'running') AND s.changed_at < now() - requeue_after
    ORDER BY {changed} LIMIT max_rows)
  UNION ALL
  (SELECT 'superseded', old.tenant_id, old.workspace_id, old.id
     FROM (SELECT v.tenant_id, v.document_id, max(v.ordinal) AS newest
             FROM versions v WHERE v.ordinal > 1 GROUP BY v.tenant_id, v.document_id) replaced
     JOIN active ON active.id = replaced.tenant_id
     JOIN versions old ON old.tenant_id = replaced.tenant_id AND old.document_id = replaced.document_id
    WHERE old.ordinal < replaced.newest
      AND NOT EXISTS (SELECT 1 FROM live_versions l WHERE l.tenant_id = old.tenant_id AND l.version_id = old.id)
      AND NOT EXISTS (SELECT 1 FROM index_states s WHERE s.tenant_id = old.tenant_id AND s.version_id = old.id
                       AND (s.state IN ('queued', 'running') OR s.changed_at >= now() - requeue_after))
      AND EXISTS (SELECT 1 FROM documents d WHERE d.tenant_id = old.tenant_id AND d.id = old.document_id
                   AND d.deleting_at IS NULL)
    ORDER BY {made} LIMIT max_rows)
  UNION ALL
  (SELECT 'document', d.tenant_id, d.workspace_id, d.id
     FROM documents d JOIN active ON active.id = d.tenant_id
    WHERE d.deleting_at < now() - requeue_after
    ORDER BY {deleting} LIMIT max_rows)
  UNION ALL
  (SELECT 'workspace', w.tenant_id, w.id, w.id
     FROM workspaces w JOIN active ON active.id = w.tenant_id
    WHERE w.status = 'deleting' AND w.updated_at < now() - requeue_after
    ORDER BY {updated} LIMIT max_rows)
$$
"""

# As in 0025.
STALE_CHANGES = """
CREATE OR REPLACE FUNCTION stale_entity_changes(requeue_after interval, max_rows int)
RETURNS TABLE (tenant_id uuid, workspace_id uuid, change_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT c.tenant_id, c.workspace_id, c.id
    FROM entity_changes c JOIN tenants t ON t.id = c.tenant_id AND t.status = 'active'
    JOIN workspaces w ON w.tenant_id = c.tenant_id AND w.id = c.workspace_id AND w.status = 'active'
   WHERE c.state = 'queued' AND c.sent_at < now() - requeue_after
   ORDER BY {sent} LIMIT max_rows
$$
"""

BY_AGE = {
    "lease": "s.lease_expires_at",
    "changed": "s.changed_at",
    "made": "old.created_at",
    "deleting": "d.deleting_at",
    "updated": "w.updated_at",
    "sent": "c.sent_at",
}


def in_turns(column: str) -> str:
    """The oldest of each tenant first, then the second of each."""
    return f"row_number() OVER (PARTITION BY {column.split('.')[0]}.tenant_id ORDER BY {column}), {column}"


def upgrade() -> None:
    for function in (STALE_WORK, STALE_CHANGES):
        op.execute(function.format(**{name: in_turns(column) for name, column in BY_AGE.items()}))


def downgrade() -> None:
    for function in (STALE_WORK, STALE_CHANGES):
        op.execute(function.format(**BY_AGE))
