"""What the sweeper looks at: each kind of stale work by its own name, superseded versions, and rows that nobody owns."""

from alembic import op

from app.db.policies import APP_ROLE

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# As in 0006, with queued and expired told apart, and with versions that no engine answers from any more.
STALE_WORK = """
CREATE OR REPLACE FUNCTION stale_work(requeue_after interval, max_rows int)
RETURNS TABLE (kind text, tenant_id uuid, workspace_id uuid, subject_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH active AS (SELECT t.id FROM tenants t WHERE t.status = 'active')
  (SELECT 'expired_' || s.engine, s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
    WHERE s.state = 'running' AND s.lease_expires_at < now()
    ORDER BY s.lease_expires_at LIMIT max_rows)
  UNION ALL
  (SELECT 'queued_lazy', s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
    WHERE s.state = 'queued' AND s.engine = 'lazy' AND s.changed_at < now() - requeue_after
    ORDER BY s.changed_at LIMIT max_rows)
  UNION ALL
  (SELECT 'queued_graph', s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
     JOIN index_states lazy ON lazy.tenant_id = s.tenant_id AND lazy.version_id = s.version_id
                           AND lazy.engine = 'lazy' AND lazy.state = 'ready'
    WHERE s.state = 'queued' AND s.engine = 'graph' AND s.changed_at < now() - requeue_after
    ORDER BY s.changed_at LIMIT max_rows)
  UNION ALL
  (SELECT 'purging', s.tenant_id, s.workspace_id, s.version_id
     FROM index_states s JOIN active ON active.id = s.tenant_id
    WHERE s.cleanliness = 'purging' AND s.state NOT IN ('queued', 'running') AND s.changed_at < now() - requeue_after
    ORDER BY s.changed_at LIMIT max_rows)
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
    ORDER BY old.created_at LIMIT max_rows)
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

# Versions that the graph engine's tables name and `versions` does not: a row of a version is written before the first of
# the engine's and removed after the last. Without a tenant: rows of a workspace that is gone. It reads every row of the
# engine, so it is asked now and then only.
UNOWNED_ENGINE_ROWS = """
CREATE FUNCTION unowned_engine_rows(max_rows int) RETURNS TABLE (tenant_id uuid, workspace_id uuid, version_id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  sources text;
BEGIN
  SELECT string_agg(format('SELECT workspace, NULL AS version FROM %1$s UNION ALL SELECT workspace, %2$s FROM %1$s',
           c.oid::regclass,
           CASE
             WHEN c.relname IN ('lightrag_doc_full', 'lightrag_doc_status', 'lightrag_full_entities',
                                'lightrag_full_relations') THEN 'id'
             WHEN c.relname = 'lightrag_llm_cache' THEN 'chunk_id'
             WHEN c.relname IN ('lightrag_entity_chunks', 'lightrag_relation_chunks')
               THEN 'jsonb_array_elements_text(chunk_ids)'
             WHEN c.relname LIKE 'lightrag_graph_%' THEN
               'unnest(string_to_array(properties->>''source_id'', ''<SEP>''))'
             WHEN EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'full_doc_id')
               THEN 'full_doc_id'
             ELSE 'unnest(chunk_ids)'
           END), ' UNION ALL ')
    INTO sources
    FROM pg_class c
   WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
     AND c.relname LIKE 'lightrag\\_%';
  RETURN QUERY EXECUTE format($query$
    SELECT DISTINCT w.tenant_id, named.workspace_id, CASE WHEN w.id IS NOT NULL THEN named.version_id END
      FROM (SELECT DISTINCT CAST(substring(workspace FROM '^w_([0-9a-f]{32})$') AS uuid) AS workspace_id,
                   CAST(substring(version FROM '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}') AS uuid) AS version_id
              FROM (%s) sources) named
      LEFT JOIN workspaces w ON w.id = named.workspace_id
     WHERE named.workspace_id IS NOT NULL
       AND (w.id IS NULL OR (named.version_id IS NOT NULL AND w.status = 'active'
            AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.tenant_id = w.tenant_id AND v.id = named.version_id)))
     LIMIT $1
  $query$, sources) USING max_rows;
END
$$
"""

# An original is written before its row, so one that is young may be about to get it.
UNKNOWN_BLOB_KEYS = """
CREATE FUNCTION unknown_blob_keys(keys text[]) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT k FROM unnest(keys) k WHERE NOT EXISTS (SELECT 1 FROM blobs b WHERE b.key = k)
$$
"""

# As in 0006.
STALE_WORK_BEFORE = """
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

FUNCTIONS = {
    "unowned_engine_rows(int)": UNOWNED_ENGINE_ROWS,
    "unknown_blob_keys(text[])": UNKNOWN_BLOB_KEYS,
}


def upgrade() -> None:
    op.create_index(
        "ix_versions_later",
        "versions",
        ["tenant_id", "document_id", "ordinal"],
        unique=False,
        postgresql_where="ordinal > 1",
    )
    op.execute(STALE_WORK)
    for signature, function in FUNCTIONS.items():
        op.execute(function)
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {APP_ROLE}")


def downgrade() -> None:
    for signature in FUNCTIONS:
        op.execute(f"DROP FUNCTION {signature}")
    op.execute(STALE_WORK_BEFORE)
    op.drop_index("ix_versions_later", table_name="versions")
