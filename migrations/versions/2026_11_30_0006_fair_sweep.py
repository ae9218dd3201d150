"""What the sweeper looks at, by kind: a backlog of one kind must not hide what stands still of another."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# At most `max_rows` of each kind, oldest first, what a dead worker left before what only waits: ids, of active tenants
# only (the work of a suspended one waits). A graph whose text is not indexed yet cannot be claimed, so it is not stale.
STALE_WORK = """
CREATE OR REPLACE FUNCTION stale_work(requeue_after interval, max_rows int)
RETURNS TABLE (kind text, tenant_id uuid, workspace_id uuid, subject_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH active AS (SELECT t.id FROM tenants t WHERE t.status = 'active')
  (SELECT s.engine, s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
    WHERE s.state = 'running' AND s.lease_expires_at < now()
    ORDER BY s.lease_expires_at LIMIT max_rows)
  UNION ALL
  (SELECT s.engine, s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
    WHERE s.state = 'queued' AND s.engine = 'lazy' AND s.changed_at < now() - requeue_after
    ORDER BY s.changed_at LIMIT max_rows)
  UNION ALL
  (SELECT s.engine, s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
     JOIN index_states lazy ON lazy.tenant_id = s.tenant_id AND lazy.version_id = s.version_id
                           AND lazy.engine = 'lazy' AND lazy.state = 'ready'
    WHERE s.state = 'queued' AND s.engine = 'graph' AND s.changed_at < now() - requeue_after
    ORDER BY s.changed_at LIMIT max_rows)
  UNION ALL
  (SELECT 'purge', s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
    WHERE s.cleanliness = 'purging' AND s.changed_at < now() - requeue_after
    ORDER BY s.changed_at LIMIT max_rows)
  UNION ALL
  (SELECT 'document', d.tenant_id, d.workspace_id, d.id
     FROM documents d JOIN active ON active.id = d.tenant_id
    WHERE d.deleting_at < now() - requeue_after
    ORDER BY d.deleting_at LIMIT max_rows)
  UNION ALL
  (SELECT 'workspace', w.tenant_id, w.id, w.id
     FROM workspaces w JOIN active ON active.id = w.tenant_id
    WHERE w.status = 'deleting' AND w.updated_at < now() - requeue_after
    ORDER BY w.updated_at LIMIT max_rows)
$$
"""

# As in 0002.
STALE_WORK_BEFORE = """
CREATE OR REPLACE FUNCTION stale_work(requeue_after interval, max_rows int)
RETURNS TABLE (kind text, tenant_id uuid, workspace_id uuid, subject_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT w.* FROM (
    SELECT s.engine AS kind, s.tenant_id, s.workspace_id, s.version_id AS subject_id
      FROM index_states s
     WHERE (s.state = 'queued' AND s.changed_at < now() - requeue_after)
        OR (s.state = 'running' AND s.lease_expires_at < now())
    UNION ALL
    SELECT 'purge', s.tenant_id, s.workspace_id, s.version_id
      FROM index_states s WHERE s.cleanliness = 'purging' AND s.changed_at < now() - requeue_after
    UNION ALL
    SELECT 'document', d.tenant_id, d.workspace_id, d.id
      FROM documents d WHERE d.deleting_at < now() - requeue_after
    UNION ALL
    SELECT 'workspace', x.tenant_id, x.id, x.id
      FROM workspaces x WHERE x.status = 'deleting' AND x.updated_at < now() - requeue_after
  ) w JOIN tenants t ON t.id = w.tenant_id
 WHERE t.status = 'active'
 LIMIT max_rows
$$
"""


def upgrade() -> None:
    op.execute(STALE_WORK)


def downgrade() -> None:
    op.execute(STALE_WORK_BEFORE)
