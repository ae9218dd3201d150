"""Tenants are suspended and deleted by operators: a policy for them, the record of a deletion, and its proof by counting."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.db.policies import APP_ROLE, CURRENT_TENANT, ENGINE_ROLE, OPERATING, fence

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

FIND_API_KEY = """
CREATE FUNCTION find_api_key(wanted text)
RETURNS TABLE (id uuid, tenant_id uuid, tenant_status text, workspace_id uuid, role text, secret_hash bytea,
               expires_at timestamptz, revoked_at timestamptz{more})
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT k.id, k.tenant_id, t.status, k.workspace_id, k.role, k.secret_hash, k.expires_at, k.revoked_at{value}
    FROM api_keys k JOIN tenants t ON t.id = k.tenant_id
   WHERE k.prefix = wanted
$$
"""

# Counts what is left of a tenant in every table that can hold rows of one: found in the catalog, so that a new table is
# counted without being remembered. LightRAG's tables know the workspace's name only, posting tables its number.
TENANT_RESIDUE = """
CREATE FUNCTION tenant_residue(wanted uuid, workspace_ids uuid[], numbers int[])
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


def upgrade() -> None:
    op.drop_constraint("ck_tenants_status", "tenants")
    op.create_check_constraint(op.f("ck_tenants_status"), "tenants", "status IN ('active', 'suspended', 'deleting')")
    # A tenant reads its own row; only operators change it.
    op.execute("DROP POLICY isolation ON tenants")
    op.execute(
        f"CREATE POLICY isolation ON tenants FOR SELECT TO {APP_ROLE}, {ENGINE_ROLE} USING (id = {CURRENT_TENANT})"
    )
    op.execute(f"GRANT INSERT, UPDATE, DELETE ON tenants TO {APP_ROLE}")
    op.execute(f"CREATE POLICY operation ON tenants TO {APP_ROLE} USING ({OPERATING}) WITH CHECK ({OPERATING})")
    op.create_table(
        "tenant_deletions",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("workspaces", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("proof", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_tenant_deletions")),
    )
    for statement in fence("tenant_deletions", OPERATING, APP_ROLE):
        op.execute(statement)
    op.execute(f"GRANT SELECT, INSERT, UPDATE ON tenant_deletions TO {APP_ROLE}")
    _replace_find_api_key(more=", last_used_at timestamptz", value=", k.last_used_at")
    op.execute(TENANT_RESIDUE)
    op.execute("REVOKE ALL ON FUNCTION tenant_residue(uuid, uuid[], int[]) FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION tenant_residue(uuid, uuid[], int[]) TO {APP_ROLE}")


def downgrade() -> None:
    op.execute("DROP FUNCTION tenant_residue(uuid, uuid[], int[])")
    _replace_find_api_key(more="", value="")
    op.drop_table("tenant_deletions")
    op.execute("DROP POLICY operation ON tenants")
    op.execute("DROP POLICY isolation ON tenants")
    own = f"id = {CURRENT_TENANT}"
    op.execute(f"CREATE POLICY isolation ON tenants TO {APP_ROLE}, {ENGINE_ROLE} USING ({own}) WITH CHECK ({own})")
    op.execute(f"REVOKE INSERT, UPDATE, DELETE ON tenants FROM {APP_ROLE}")
    op.drop_constraint("ck_tenants_status", "tenants")
    op.create_check_constraint(op.f("ck_tenants_status"), "tenants", "status IN ('active', 'suspended')")


def _replace_find_api_key(*, more: str, value: str) -> None:
    op.execute("DROP FUNCTION find_api_key(text)")
    op.execute(FIND_API_KEY.format(more=more, value=value))
    op.execute("REVOKE ALL ON FUNCTION find_api_key(text) FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION find_api_key(text) TO {APP_ROLE}")
