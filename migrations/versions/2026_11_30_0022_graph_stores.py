"""Workspaces may keep their graph in Apache AGE: a schema and a role of its own each, made and dropped by functions here.

Nothing here needs AGE until it is called: what names its catalog is run as text.
"""

import sqlalchemy as sa
from alembic import op

from app.db.policies import APP_ROLE, ENGINE_ROLE, GRAPH_ROLE

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

# Why no graph can be made in AGE here; NULL if one can. Newer versions crash LightRAG's queries (facts, section 1).
GRAPH_STORE_OBSTACLE = f"""
CREATE FUNCTION graph_store_obstacle() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  age_version text := (SELECT extversion FROM pg_extension WHERE extname = 'age');
BEGIN
  IF age_version IS NULL THEN RETURN 'extension_missing'; END IF;
  IF string_to_array(substring(age_version FROM '^[0-9]+[.][0-9]+'), '.')::int[] >= ARRAY[1, 8] THEN
    RETURN 'version_unsupported';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = current_user AND (rolcreaterole OR rolsuper))
     OR NOT EXISTS (SELECT 1 FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
                     WHERE r.rolname = '{GRAPH_ROLE}' AND m.admin_option AND m.member = current_user::regrole)
     OR NOT has_schema_privilege('ag_catalog', 'USAGE') THEN
    RETURN 'not_prepared';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_settings WHERE name LIKE 'age.%') THEN RETURN 'not_loaded'; END IF;
  RETURN NULL;
END
$$
"""

# The name of a workspace's graph is that of its schema and of the only role that can reach it.
# Everything is made in one transaction, on tables that nobody knows yet: no index is built beside running writers.
OPEN_GRAPH = f"""
CREATE FUNCTION open_graph(wanted uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ag_catalog, public, pg_temp AS $$
DECLARE
  graph text := public.graph_name(wanted);
  obstacle text := public.graph_store_obstacle();
  entity_id text := 'ag_catalog.agtype_access_operator(VARIADIC ARRAY[properties, ''"entity_id"''::ag_catalog.agtype])';
BEGIN
  IF NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.id = wanted AND w.status = 'active'
                    AND w.tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::uuid) THEN
    RAISE EXCEPTION 'no such workspace' USING ERRCODE = 'no_data_found';
  END IF;
  IF obstacle IS NOT NULL THEN
    RAISE EXCEPTION 'Apache AGE cannot be used here: %', obstacle USING ERRCODE = 'feature_not_supported';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('graph ' || graph, 0));
  IF to_regnamespace(graph) IS NOT NULL THEN RETURN false; END IF;
  IF to_regrole(graph) IS NULL THEN EXECUTE format('CREATE ROLE %I NOLOGIN', graph); END IF;
  EXECUTE format('GRANT {GRAPH_ROLE} TO %I', graph);
  EXECUTE format('GRANT %I TO {ENGINE_ROLE} WITH INHERIT FALSE, SET TRUE', graph);
  EXECUTE format('SELECT ag_catalog.create_graph(%1$L), ag_catalog.create_vlabel(%1$L, ''base''),
                         ag_catalog.create_elabel(%1$L, ''DIRECTED'')', graph);
  EXECUTE format('CREATE UNIQUE INDEX base_entity_id ON %I.base (%s)', graph, entity_id);
  EXECUTE format('CREATE UNIQUE INDEX base_id ON %I.base (id)', graph);
  EXECUTE format('CREATE INDEX base_properties ON %I.base USING gin (properties)', graph);
  EXECUTE format('CREATE UNIQUE INDEX directed_id ON %I."DIRECTED" (id)', graph);
  EXECUTE format('CREATE INDEX directed_start ON %I."DIRECTED" (start_id, end_id)', graph);
  EXECUTE format('CREATE INDEX directed_end ON %I."DIRECTED" (end_id, start_id)', graph);
  EXECUTE format('GRANT USAGE ON SCHEMA %1$I TO %1$I', graph);
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %1$I TO %1$I', graph);
  EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %1$I TO %1$I', graph);
  RETURN true;
END
$$
"""

# Whether there was a graph and is none now; one that its workspace lives in stays.
DROP_GRAPH = """
CREATE FUNCTION drop_graph(wanted uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET client_min_messages = 'warning' AS $$
DECLARE
  graph text := public.graph_name(wanted);
BEGIN
  IF EXISTS (SELECT 1 FROM workspaces w WHERE w.id = wanted AND w.status = 'active' AND w.graph_store = 'age') THEN
    RETURN false;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('graph ' || graph, 0));
  IF to_regnamespace(graph) IS NULL THEN RETURN false; END IF;
  EXECUTE format('SELECT ag_catalog.drop_graph(%L, true)', graph);
  EXECUTE format('DROP ROLE %I', graph);
  RETURN true;
END
$$
"""

GRAPH_NAME = """
CREATE FUNCTION graph_name(workspace uuid) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT 'w_' || replace(workspace::text, '-', '') || '_chunk_entity_relation'
$$
"""

# As in 0008, and the graphs.
TENANT_RESIDUE = """
CREATE OR REPLACE FUNCTION tenant_residue(wanted uuid, workspace_ids uuid[], numbers int[])
RETURNS TABLE (table_name text, remaining bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE found record;
BEGIN
  IF current_setting('app.operator', true) IS DISTINCT FROM 'on' THEN
    RAISE EXCEPTION 'only an operator may count the rows of a tenant';
  END IF;
  FOR found IN
    SELECT c.relname, a.attname, format_type(a.atttypid, NULL) AS kind
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND (a.attname IN ('tenant_id', 'workspace_id', 'workspace') OR (c.relname = 'tenants' AND a.attname = 'id'))
       AND c.relname <> 'tenant_deletions'
     ORDER BY 1, 2
  LOOP
    table_name := found.relname || '.' || found.attname;
    IF found.attname IN ('tenant_id', 'id') THEN
      EXECUTE format('SELECT count(*) FROM %I WHERE %I = $1', found.relname, found.attname) INTO remaining USING wanted;
    ELSIF found.kind = 'uuid' THEN
      EXECUTE format('SELECT count(*) FROM %I WHERE %I = ANY ($1)', found.relname, found.attname)
         INTO remaining USING workspace_ids;
    ELSIF found.kind = 'integer' THEN
      EXECUTE format('SELECT count(*) FROM %I WHERE %I = ANY ($1)', found.relname, found.attname)
         INTO remaining USING numbers;
    ELSE
      EXECUTE format('SELECT count(*) FROM %I WHERE %I = ANY ($1)', found.relname, found.attname)
         INTO remaining
        USING ARRAY(SELECT 'w_' || replace(each::text, '-', '') FROM unnest(workspace_ids) each);
    END IF;
    RETURN NEXT;
  END LOOP;
  -- A graph in Apache AGE is a schema and a role, without a row that names the workspace.
  table_name := 'graphs';
  SELECT count(*) INTO remaining FROM unnest(workspace_ids) each
   WHERE to_regnamespace(graph_name(each)) IS NOT NULL OR to_regrole(graph_name(each)) IS NOT NULL;
  RETURN NEXT;
END
$$
"""
TENANT_RESIDUE_BEFORE = """
CREATE OR REPLACE FUNCTION tenant_residue(wanted uuid, workspace_ids uuid[], numbers int[])
RETURNS TABLE (table_name text, remaining bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE found record;
BEGIN
  IF current_setting('app.operator', true) IS DISTINCT FROM 'on' THEN
    RAISE EXCEPTION 'only an operator may count the rows of a tenant';
  END IF;
  FOR found IN
    SELECT c.relname, a.attname, format_type(a.atttypid, NULL) AS kind
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND (a.attname IN ('tenant_id', 'workspace_id', 'workspace') OR (c.relname = 'tenants' AND a.attname = 'id'))
       AND c.relname <> 'tenant_deletions'
     ORDER BY 1, 2
  LOOP
    table_name := found.relname || '.' || found.attname;
    IF found.attname IN ('tenant_id', 'id') THEN
      EXECUTE format('SELECT count(*) FROM %I WHERE %I = $1', found.relname, found.attname) INTO remaining USING wanted;
    ELSIF found.kind = 'uuid' THEN
      EXECUTE format('SELECT count(*) FROM %I WHERE %I = ANY ($1)', found.relname, found.attname)
         INTO remaining USING workspace_ids;
    ELSIF found.kind = 'integer' THEN
      EXECUTE format('SELECT count(*) FROM %I WHERE %I = ANY ($1)', found.relname, found.attname)
         INTO remaining USING numbers;
    ELSE
      EXECUTE format('SELECT count(*) FROM %I WHERE %I = ANY ($1)', found.relname, found.attname)
         INTO remaining
        USING ARRAY(SELECT 'w_' || replace(each::text, '-', '') FROM unnest(workspace_ids) each);
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$
"""

# As in 0011, and the graphs.
UNOWNED_ENGINE_ROWS = """
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
UNOWNED_ENGINE_ROWS_BEFORE = """
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

FUNCTIONS = {
    "graph_name(uuid)": (GRAPH_NAME, f"{APP_ROLE}, {ENGINE_ROLE}"),
    "graph_store_obstacle()": (GRAPH_STORE_OBSTACLE, f"{APP_ROLE}, {ENGINE_ROLE}"),
    "open_graph(uuid)": (OPEN_GRAPH, ENGINE_ROLE),
    "drop_graph(uuid)": (DROP_GRAPH, ENGINE_ROLE),
}


def upgrade() -> None:
    op.add_column("workspaces", sa.Column("graph_store", sa.TEXT(), server_default="table", nullable=False))
    op.create_check_constraint(op.f("ck_workspaces_graph_store"), "workspaces", "graph_store IN ('table', 'age')")
    for signature, (definition, roles) in FUNCTIONS.items():
        op.execute(definition)
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {roles}")
    op.execute(f"GRANT SELECT (tenant_id, id, graph_store) ON workspaces TO {ENGINE_ROLE}")
    op.execute(TENANT_RESIDUE)
    op.execute(UNOWNED_ENGINE_ROWS)


def downgrade() -> None:
    op.execute(UNOWNED_ENGINE_ROWS_BEFORE)
    op.execute(TENANT_RESIDUE_BEFORE)
    for signature in reversed(FUNCTIONS):
        op.execute(f"DROP FUNCTION {signature}")
    op.drop_constraint(op.f("ck_workspaces_graph_store"), "workspaces")
    op.drop_column("workspaces", "graph_store")
