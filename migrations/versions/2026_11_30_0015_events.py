"""Events of documents, written by triggers in the transactions that they tell of, and webhooks that carry them out."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.db.policies import APP_ROLE, audit, fence_by_tenant

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TABLES = ("event_counters", "events", "webhooks", "webhook_deliveries")

# Deferred to the commit: what a transaction leaves behind is told, once, and the counter's row, which puts events in
# the order of their commits, is locked for the commit only. A reader never sees an event before one with a smaller id.
NOTE_EVENT = """
CREATE FUNCTION note_document_event() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  kind text;
  about uuid;
  version uuid;
  tenant uuid;
  place uuid;
  next bigint;
BEGIN
  IF TG_TABLE_NAME = 'documents' THEN
    kind := 'deleted';
    about := OLD.id;
    tenant := OLD.tenant_id;
    place := OLD.workspace_id;
    -- A workspace that goes takes its events with it.
    PERFORM FROM workspaces w WHERE w.tenant_id = tenant AND w.id = place;
    IF NOT FOUND THEN
      RETURN NULL;
    END IF;
  ELSE
    version := NEW.version_id;
    tenant := NEW.tenant_id;
    place := NEW.workspace_id;
    SELECT s.status, s.document_id INTO kind, about
      FROM versions v JOIN document_statuses s ON s.tenant_id = v.tenant_id AND s.document_id = v.document_id
     WHERE v.tenant_id = tenant AND v.id = version AND s.version_id = version;
    IF kind IS NULL OR kind NOT IN ('ready', 'partial', 'failed', 'cancelled') THEN
      RETURN NULL;
    END IF;
    -- Several engines may have changed at once.
    PERFORM FROM events e
      WHERE e.tenant_id = tenant AND e.document_id = about AND e.transaction_id = pg_current_xact_id()::text;
    IF FOUND THEN
      RETURN NULL;
    END IF;
  END IF;
  INSERT INTO event_counters AS c (tenant_id, workspace_id, last_id) VALUES (tenant, place, 1)
  ON CONFLICT (tenant_id, workspace_id) DO UPDATE SET last_id = c.last_id + 1
  RETURNING last_id INTO next;
  INSERT INTO events (tenant_id, workspace_id, id, type, document_id, version_id, transaction_id)
  VALUES (tenant, place, next, 'document.' || kind, about, version, pg_current_xact_id()::text);
  INSERT INTO webhook_deliveries (tenant_id, workspace_id, webhook_id, event_id)
  SELECT tenant, place, w.id, next FROM webhooks w
   WHERE w.tenant_id = tenant AND w.workspace_id = place AND w.status = 'active'
     AND ('document.' || kind) = ANY (w.events);
  RETURN NULL;
END
$$
"""

TRIGGERS = (
    """
CREATE CONSTRAINT TRIGGER note_event AFTER UPDATE ON index_states DEFERRABLE INITIALLY DEFERRED
   FOR EACH ROW WHEN (OLD.state <> NEW.state OR OLD.cleanliness <> NEW.cleanliness)
   EXECUTE FUNCTION note_document_event()
""",
    """
CREATE CONSTRAINT TRIGGER note_deletion AFTER DELETE ON documents DEFERRABLE INITIALLY DEFERRED
   FOR EACH ROW EXECUTE FUNCTION note_document_event()
""",
)

# Over all tenants, as ids only. What is being sent is not due: its next attempt was moved when it was taken.
DUE_DELIVERIES = """
CREATE FUNCTION due_webhook_deliveries(max_rows int) RETURNS TABLE (tenant_id uuid, id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT d.tenant_id, d.id
    FROM webhook_deliveries d
    JOIN webhooks w ON w.tenant_id = d.tenant_id AND w.id = d.webhook_id AND w.status = 'active'
    JOIN tenants t ON t.id = d.tenant_id AND t.status = 'active'
   WHERE d.state = 'pending' AND d.next_attempt_at <= now()
   ORDER BY d.next_attempt_at LIMIT max_rows
$$
"""

FORGET_EVENTS = """
CREATE FUNCTION forget_events(older_than interval, max_rows int) RETURNS int
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH gone AS (
    DELETE FROM events e
     WHERE (e.tenant_id, e.workspace_id, e.id) IN (
             SELECT o.tenant_id, o.workspace_id, o.id FROM events o
              WHERE o.created_at < now() - older_than LIMIT max_rows FOR UPDATE SKIP LOCKED)
    RETURNING 1)
  SELECT count(*)::int FROM gone
$$
"""
FUNCTIONS = (
    (DUE_DELIVERIES, "due_webhook_deliveries(int)"),
    (FORGET_EVENTS, "forget_events(interval, int)"),
)


def upgrade() -> None:
    _create_events()
    _create_webhooks()
    for table in TABLES:
        for statement in fence_by_tenant(table):
            op.execute(statement)
    op.execute(f"GRANT SELECT ON events TO {APP_ROLE}")
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON webhooks, webhook_deliveries TO {APP_ROLE}")
    op.execute(NOTE_EVENT)
    op.execute("REVOKE ALL ON FUNCTION note_document_event() FROM PUBLIC")
    for trigger in TRIGGERS:
        op.execute(trigger)
    op.execute(audit("webhooks", "id", "webhook", "INSERT OR UPDATE OF url, events, status OR DELETE"))
    for function, signature in FUNCTIONS:
        op.execute(function)
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {APP_ROLE}")


def _create_events() -> None:
    op.create_table(
        "event_counters",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_event_counters_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "workspace_id", name=op.f("pk_event_counters")),
    )
    op.create_table(
        "events",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("type", sa.TEXT(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("version_id", sa.Uuid(), nullable=True),
        sa.Column("transaction_id", sa.TEXT(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_events_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "workspace_id", "id", name=op.f("pk_events")),
    )
    op.create_index(op.f("ix_events_tenant_id_document_id"), "events", ["tenant_id", "document_id"], unique=False)
    op.create_index(op.f("ix_events_created_at"), "events", ["created_at"], unique=False)


def _create_webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("url", sa.TEXT(), nullable=False),
        sa.Column("events", postgresql.ARRAY(sa.TEXT()), nullable=False),
        sa.Column("key", postgresql.BYTEA(), nullable=False, comment="The secret, encrypted."),
        sa.Column("status", sa.TEXT(), server_default="active", nullable=False),
        sa.Column("disabled_reason", sa.TEXT(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.CheckConstraint("status IN ('active', 'disabled')", name=op.f("ck_webhooks_status")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_webhooks_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_webhooks")),
    )
    op.create_index(
        op.f("ix_webhooks_tenant_id_workspace_id_created_at"),
        "webhooks",
        ["tenant_id", "workspace_id", "created_at"],
        unique=False,
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("webhook_id", sa.Uuid(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.TEXT(), server_default="pending", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "next_attempt_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("response_status", sa.Integer(), nullable=True),
        sa.Column("error_code", sa.TEXT(), nullable=True),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.CheckConstraint("state IN ('pending', 'delivered', 'failed')", name=op.f("ck_webhook_deliveries_state")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "webhook_id"],
            ["webhooks.tenant_id", "webhooks.id"],
            name=op.f("fk_webhook_deliveries_tenant_id_webhook_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id", "event_id"],
            ["events.tenant_id", "events.workspace_id", "events.id"],
            name=op.f("fk_webhook_deliveries_tenant_id_workspace_id_event_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_webhook_deliveries")),
        sa.UniqueConstraint(
            "tenant_id", "webhook_id", "event_id", name=op.f("uq_webhook_deliveries_tenant_id_webhook_id_event_id")
        ),
    )
    op.create_index(
        "ix_webhook_deliveries_due",
        "webhook_deliveries",
        ["next_attempt_at"],
        unique=False,
        postgresql_where="state = 'pending'",
    )
    op.create_index(
        op.f("ix_webhook_deliveries_tenant_id_workspace_id_event_id"),
        "webhook_deliveries",
        ["tenant_id", "workspace_id", "event_id"],
        unique=False,
    )


def downgrade() -> None:
    for _, signature in FUNCTIONS:
        op.execute(f"DROP FUNCTION {signature}")
    op.execute("DROP TRIGGER note_deletion ON documents")
    op.execute("DROP TRIGGER note_event ON index_states")
    op.execute("DROP FUNCTION note_document_event()")
    for table in reversed(TABLES):
        op.drop_table(table)
