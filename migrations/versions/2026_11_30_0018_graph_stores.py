"""Workspaces may keep their graph in Apache AGE: a schema and a role of its own each, made and dropped by functions here.

Nothing here needs AGE until it is called: what names its catalog is run as text.
"""

import sqlalchemy as sa
from alembic import op

from app.db.policies import APP_ROLE, ENGINE_ROLE, GRAPH_ROLE

revision = "0018"
down_revision = "0017"
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
  EXECUTE format('CREATE ROLE %I NOLOGIN', graph);
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

# Of a workspace that is gone, is being removed, or keeps its graph in the tables.
DROP_GRAPH = """
CREATE FUNCTION drop_graph(wanted uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET client_min_messages = 'warning' AS $$
DECLARE
  graph text := public.graph_name(wanted);
BEGIN
  IF EXISTS (SELECT 1 FROM workspaces w WHERE w.id = wanted AND w.status = 'active' AND w.graph_store = 'age') THEN
    RAISE EXCEPTION 'the graph is in use' USING ERRCODE = 'object_in_use';
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


def downgrade() -> None:
    for signature in reversed(FUNCTIONS):
        op.execute(f"DROP FUNCTION {signature}")
    op.drop_constraint(op.f("ck_workspaces_graph_store"), "workspaces")
    op.drop_column("workspaces", "graph_store")
