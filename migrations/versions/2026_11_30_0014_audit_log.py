"""The audit log: written by triggers in the transaction of the change, read by the tenant, changed by nobody."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.db.policies import APP_ROLE, audit, fence_by_tenant

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# What says nothing about a change, and what nobody may read again.
HIDDEN = (
    "ARRAY['tenant_id', 'created_at', 'updated_at', 'changed_at', 'last_used_at', 'secret_hash', 'key', 'target_key']"
)

# Runs as the owner, for the runtime roles may not write the table. An update keeps the columns that changed.
RECORD_CHANGE = f"""
CREATE FUNCTION record_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  context jsonb := current_setting('app.audit')::jsonb;
  old_row jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
  new_row jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
  known jsonb := coalesce(new_row, old_row);
  tenant uuid := coalesce(known->>'tenant_id', NULLIF(current_setting('app.tenant_id', true), ''), known->>'id')::uuid;
  place uuid := CASE TG_TABLE_NAME WHEN 'workspaces' THEN (known->>'id')::uuid ELSE (known->>'workspace_id')::uuid END;
  before jsonb;
  after jsonb;
BEGIN
  IF TG_TABLE_NAME = 'lightrag_graph_nodes' THEN
    place := substr(known->>'workspace', 3)::uuid;
    old_row := jsonb_build_object('type', old_row->'properties'->'entity_type',
                                  'description', left(old_row->'properties'->>'description', 2000));
    new_row := jsonb_build_object('type', new_row->'properties'->'entity_type',
                                  'description', left(new_row->'properties'->>'description', 2000));
    IF TG_OP = 'INSERT' THEN old_row := NULL; END IF;
    IF TG_OP = 'DELETE' THEN new_row := NULL; END IF;
  END IF;
  IF TG_OP = 'UPDATE' THEN
    SELECT jsonb_object_agg(key, old_row->key), jsonb_object_agg(key, value) INTO before, after
      FROM jsonb_each(new_row - {HIDDEN}) WHERE old_row->key IS DISTINCT FROM value;
    IF after IS NULL THEN RETURN NULL; END IF;
  ELSE
    before := old_row - {HIDDEN};
    after := new_row - {HIDDEN};
  END IF;
  INSERT INTO audit_events (tenant_id, actor, address, request_id, action, change, kind, subject, workspace_id, before, after)
  VALUES (tenant, context->>'actor', context->>'address', context->>'request_id', context->>'action',
          lower(TG_OP), TG_ARGV[1], known->>TG_ARGV[0], place, before, after);
  RETURN NULL;
END
$$
"""

# Table, column that names the row, what the log calls it, and the events that count.
AUDITED = (
    ("tenants", "id", "tenant", "INSERT OR UPDATE"),
    ("api_keys", "id", "key", "INSERT OR UPDATE"),
    ("workspaces", "id", "workspace", "INSERT OR UPDATE"),
    ("documents", "id", "document", "INSERT OR UPDATE"),
    ("versions", "id", "version", "INSERT"),
    ("index_states", "version_id", "index", "UPDATE OF state"),
    ("entity_aliases", "alias", "alias", "INSERT OR UPDATE OR DELETE"),
    ("lightrag_graph_nodes", "id", "entity", "INSERT OR UPDATE OR DELETE"),
)


def upgrade() -> None:
    op.create_table(
        "audit_events",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("actor", sa.TEXT(), nullable=False),
        sa.Column("address", sa.TEXT(), nullable=True),
        sa.Column("request_id", sa.TEXT(), nullable=True),
        sa.Column("action", sa.TEXT(), nullable=False),
        sa.Column("change", sa.TEXT(), nullable=False),
        sa.Column("kind", sa.TEXT(), nullable=False),
        sa.Column("subject", sa.TEXT(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=True),
        sa.Column("before", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("after", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_audit_events_tenant_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_audit_events")),
    )
    op.create_index(
        op.f("ix_audit_events_tenant_id_subject_id"), "audit_events", ["tenant_id", "subject", "id"], unique=False
    )
    for statement in fence_by_tenant("audit_events"):
        op.execute(statement)
    op.execute(f"GRANT SELECT ON audit_events TO {APP_ROLE}")
    op.execute(RECORD_CHANGE)
    op.execute("REVOKE ALL ON FUNCTION record_change() FROM PUBLIC")
    for table, subject, kind, events in AUDITED:
        op.execute(audit(table, subject, kind, events))


def downgrade() -> None:
    for table, *_ in AUDITED:
        op.execute(f"DROP TRIGGER audit ON {table}")
    op.execute("DROP FUNCTION record_change()")
    op.drop_table("audit_events")
