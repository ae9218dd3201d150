"""Row level security, grants of the runtime roles, document statuses, and the functions that look across tenants."""

from alembic import op

from app.db.policies import APP_ROLE, ENGINE_ROLE, fence_by_tenant

revision = "0002"
down_revision = "0001b"
branch_labels = None
depends_on = None

TENANT_TABLES = (
    "api_keys",
    "workspaces",
    "corpus_versions",
    "workspace_leases",
    "blobs",
    "documents",
    "versions",
    "index_states",
    "live_versions",
    "passages",
    "chunks",
    "mentions",
    "usage_events",
)

# What the engine's one transaction may touch of our own tables, and nothing else.
ENGINE_GRANTS = (
    "SELECT, UPDATE ON workspace_leases",
    "SELECT, UPDATE ON corpus_versions",
    "SELECT, INSERT, UPDATE, DELETE ON live_versions",
    "SELECT, INSERT, DELETE ON mentions",
    "SELECT ON index_states",
    "UPDATE (state, cleanliness, stage, error_code, error_detail, chunks_done, stage_ms, model_calls, tokens_in,"
    " tokens_out, lease_owner, lease_expires_at, finished_at, changed_at) ON index_states",
)

# The one definition of a document's status: what its newest version's engines say together.
DOCUMENT_STATUSES = """
CREATE VIEW document_statuses WITH (security_invoker = true) AS
SELECT d.tenant_id, d.workspace_id, d.id AS document_id, v.id AS version_id,
       CASE
         WHEN d.deleting_at IS NOT NULL THEN 'deleting'
         WHEN s.is_open THEN 'processing'
         WHEN s.all_ready THEN 'ready'
         WHEN s.all_cancelled THEN 'cancelled'
         WHEN s.any_usable THEN 'partial'
         ELSE 'failed'
       END AS status
  FROM documents d
  JOIN LATERAL (SELECT id FROM versions WHERE tenant_id = d.tenant_id AND document_id = d.id
                ORDER BY ordinal DESC LIMIT 1) v ON true
  JOIN LATERAL (SELECT bool_or(state IN ('queued', 'running') OR cleanliness = 'purging') AS is_open,
                       bool_and(state = 'ready') AS all_ready,
                       bool_and(state = 'cancelled') AS all_cancelled,
                       bool_or(state IN ('ready', 'partial')) AS any_usable
                  FROM index_states WHERE tenant_id = d.tenant_id AND version_id = v.id) s ON true
"""

# A key is looked up before its tenant is known. The function hands out one row, by exact prefix, and nothing else.
FIND_API_KEY = """
CREATE FUNCTION find_api_key(wanted text)
RETURNS TABLE (id uuid, tenant_id uuid, tenant_status text, workspace_id uuid, role text, secret_hash bytea,
               expires_at timestamptz, revoked_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT k.id, k.tenant_id, t.status, k.workspace_id, k.role, k.secret_hash, k.expires_at, k.revoked_at
    FROM api_keys k JOIN tenants t ON t.id = k.tenant_id
   WHERE k.prefix = wanted
$$
"""

# What the sweeper sends again: ids only, of active tenants only (the work of a suspended one waits).
STALE_WORK = """
CREATE FUNCTION stale_work(requeue_after interval, max_rows int)
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
    for table in TENANT_TABLES:
        for statement in fence_by_tenant(table):
            op.execute(statement)
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {APP_ROLE}")
    for statement in fence_by_tenant("tenants", column="id"):
        op.execute(statement)
    op.execute(f"GRANT SELECT ON tenants, model_profiles TO {APP_ROLE}")
    for grant in ENGINE_GRANTS:
        op.execute(f"GRANT {grant} TO {ENGINE_ROLE}")
    op.execute(DOCUMENT_STATUSES)
    op.execute(f"GRANT SELECT ON document_statuses TO {APP_ROLE}")
    for function, signature in ((FIND_API_KEY, "find_api_key(text)"), (STALE_WORK, "stale_work(interval, int)")):
        op.execute(function)
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {APP_ROLE}")


def downgrade() -> None:
    op.execute("DROP FUNCTION stale_work(interval, int)")
    op.execute("DROP FUNCTION find_api_key(text)")
    op.execute("DROP VIEW document_statuses")
    for table in (*TENANT_TABLES, "tenants"):
        op.execute(f"DROP POLICY isolation ON {table}")
        op.execute(f"DROP POLICY operator ON {table}")
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
        op.execute(f"REVOKE ALL ON {table} FROM {APP_ROLE}, {ENGINE_ROLE}")
    op.execute(f"REVOKE ALL ON model_profiles FROM {APP_ROLE}")
