"""What nobody owns in graphs is looked for some graphs at a time: one statement on thousands would lock more tables than
the server has room for."""

from alembic import op

from app.db.policies import APP_ROLE

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

UNOWNED_GRAPH_ROWS = """
CREATE FUNCTION unowned_graph_rows(after_graph text, max_graphs int, max_rows int)
RETURNS TABLE (tenant_id uuid, workspace_id uuid, version_id uuid, last_graph text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  sources text;
  last_name text;
BEGIN
  WITH part AS (
    SELECT n.nspname::text AS name FROM pg_namespace n
     WHERE n.nspname ~ '^w_[0-9a-f]{32}_chunk_entity_relation$' AND n.nspname::text COLLATE "C" > after_graph
     ORDER BY n.nspname::text COLLATE "C" LIMIT max_graphs
  )
  SELECT max(part.name COLLATE "C"), string_agg(format($source$ SELECT %1$L AS workspace, NULL AS version UNION ALL
           SELECT %1$L, unnest(string_to_array(properties OPERATOR(ag_catalog.->>) 'source_id'::text, '<SEP>'))
             FROM %2$I.%3$I$source$, left(part.name, 34), part.name, label.name), ' UNION ALL ')
           FILTER (WHERE to_regclass(format('%I.%I', part.name, label.name)) IS NOT NULL)
    INTO last_name, sources
    FROM part CROSS JOIN (VALUES ('base'), ('DIRECTED')) label (name);
  IF last_name IS NULL THEN
    RETURN;
  END IF;
  IF sources IS NOT NULL THEN
    RETURN QUERY EXECUTE format($query$
      SELECT DISTINCT w.tenant_id, named.workspace_id, CASE WHEN w.id IS NOT NULL THEN named.version_id END, NULL::text
        FROM (SELECT DISTINCT CAST(substring(workspace FROM '^w_([0-9a-f]{32})$') AS uuid) AS workspace_id,
                     CAST(substring(version FROM '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}') AS uuid) AS version_id
                FROM (%s) sources) named
        LEFT JOIN workspaces w ON w.id = named.workspace_id
       WHERE w.id IS NULL OR (named.version_id IS NOT NULL AND w.status = 'active'
             AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.tenant_id = w.tenant_id AND v.id = named.version_id))
       LIMIT $1
    $query$, sources) USING max_rows;
  END IF;
  last_graph := last_name;
  RETURN NEXT;
END
$$
"""

# Of the tables only, as in 0011.
UNOWNED_ENGINE_ROWS = """
CREATE OR REPLACE FUNCTION unowned_engine_rows(max_rows int) RETURNS TABLE (tenant_id uuid, workspace_id uuid, version_id uuid)
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
# And all graphs, as in 0022.
UNOWNED_ENGINE_ROWS_BEFORE = """
CREATE OR REPLACE FUNCTION unowned_engine_rows(max_rows int) RETURNS TABLE (tenant_id uuid, workspace_id uuid, version_id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  sources text;
  graphs text;
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
  -- Graphs in Apache AGE, each in a schema of its own.
  SELECT string_agg(format($source$ SELECT %1$L AS workspace, NULL AS version UNION ALL
           SELECT %1$L, unnest(string_to_array(properties OPERATOR(ag_catalog.->>) 'source_id'::text, '<SEP>'))
             FROM %2$I.%3$I$source$, left(n.nspname::text, 34), n.nspname, label.name), ' UNION ALL ')
    INTO graphs
    FROM pg_namespace n CROSS JOIN (VALUES ('base'), ('DIRECTED')) label (name)
   WHERE n.nspname ~ '^w_[0-9a-f]{32}_chunk_entity_relation$'
     AND to_regclass(format('%I.%I', n.nspname, label.name)) IS NOT NULL;
  sources := concat_ws(' UNION ALL ', sources, graphs);
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


def upgrade() -> None:
    op.execute(UNOWNED_GRAPH_ROWS)
    signature = "unowned_graph_rows(text, int, int)"
    op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {APP_ROLE}")
    op.execute(UNOWNED_ENGINE_ROWS)


def downgrade() -> None:
    op.execute(UNOWNED_ENGINE_ROWS_BEFORE)
    op.execute("DROP FUNCTION unowned_graph_rows(text, int, int)")
