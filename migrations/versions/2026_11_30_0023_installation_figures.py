"""How the whole installation stands, as numbers over all tenants, for those who watch it."""

from alembic import op

from app.db.policies import APP_ROLE

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

# Of tenants that are suspended nothing goes on, and nobody needs to be woken. `label` and `state` are empty where a figure
# has none. Each part reads an index of what is open only.
INSTALLATION_FIGURES = """
CREATE FUNCTION installation_figures()
RETURNS TABLE (subject text, label text, state text, items bigint, oldest_seconds double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH open AS (
    SELECT s.tenant_id, s.engine, s.state, CASE s.state WHEN 'queued' THEN s.queued_at ELSE s.started_at END AS since
      FROM index_states s WHERE s.state IN ('queued', 'running')
    UNION ALL
    SELECT s.tenant_id, s.engine, 'purging', s.changed_at
      FROM index_states s WHERE s.cleanliness = 'purging' AND s.state NOT IN ('queued', 'running')
  ), figures AS (
    SELECT o.tenant_id, 'index' AS subject, o.engine AS label, o.state, o.since FROM open o
    UNION ALL
    SELECT d.tenant_id, 'deletion', 'document', '', d.deleting_at FROM documents d WHERE d.deleting_at IS NOT NULL
    UNION ALL
    SELECT w.tenant_id, 'deletion', 'workspace', '', w.updated_at FROM workspaces w WHERE w.status = 'deleting'
    UNION ALL
    SELECT d.tenant_id, 'webhook', '', '', d.next_attempt_at
      FROM webhook_deliveries d
      JOIN webhooks w ON w.tenant_id = d.tenant_id AND w.id = d.webhook_id AND w.status = 'active'
     WHERE d.state = 'pending' AND d.next_attempt_at <= now()
    UNION ALL
    SELECT l.tenant_id, 'lease', '', '', NULL FROM workspace_leases l
     WHERE l.owner IS NOT NULL AND l.expires_at > now()
  )
  SELECT f.subject, f.label, f.state, count(*), coalesce(extract(epoch FROM now() - min(f.since)), 0)
    FROM figures f JOIN tenants t ON t.id = f.tenant_id AND t.status = 'active'
   GROUP BY 1, 2, 3
  UNION ALL
  SELECT 'deletion', 'tenant', '', count(*), coalesce(extract(epoch FROM now() - min(d.requested_at)), 0)
    FROM tenant_deletions d WHERE d.finished_at IS NULL
$$
"""


def upgrade() -> None:
    op.execute(INSTALLATION_FIGURES)
    op.execute("REVOKE ALL ON FUNCTION installation_figures() FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION installation_figures() TO {APP_ROLE}")


def downgrade() -> None:
    op.execute("DROP FUNCTION installation_figures()")
