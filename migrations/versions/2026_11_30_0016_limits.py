"""Plans with limits, what a tenant holds and has spent, and whose turn it is: counted by triggers, so exact for every writer."""

import sqlalchemy as sa
from alembic import op

from app.db.policies import APP_ROLE, ENGINE_ROLE, OPERATING, OWNER_ROLE, fence_by_tenant

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

LIMITS = ("requests_per_minute", "concurrent_ingestions", "documents", "stored_bytes", "model_tokens_per_month")

# The row of the tenant is locked by the update until the transaction ends, so two uploads at once cannot both be the last
# that fits. TQ001 is what the API answers `quota_exceeded` for.
COUNT_STORED = """
CREATE FUNCTION count_{table}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  found record;
  held bigint;
  allowed bigint;
BEGIN
  FOR found IN SELECT c.tenant_id, {amount} AS amount FROM changed c GROUP BY c.tenant_id LOOP
    IF TG_OP = 'DELETE' THEN
      UPDATE tenant_totals t SET {column} = t.{column} - found.amount WHERE t.tenant_id = found.tenant_id;
      CONTINUE;
    END IF;
    INSERT INTO tenant_totals AS t (tenant_id, {column}) VALUES (found.tenant_id, found.amount)
      ON CONFLICT (tenant_id) DO UPDATE SET {column} = t.{column} + excluded.{column}
      RETURNING t.{column} INTO held;
    SELECT p.{column} INTO allowed FROM tenants t JOIN plans p ON p.name = t.plan WHERE t.id = found.tenant_id;
    IF held > allowed THEN
      RAISE EXCEPTION 'quota exceeded' USING ERRCODE = 'TQ001', DETAIL = json_build_object(
        'limit', '{column}', 'maximum', allowed, 'used', held - found.amount, 'resets_at', NULL)::text;
    END IF;
  END LOOP;
  RETURN NULL;
END
$$
"""
STORED = {"documents": ("documents", "count(*)"), "blobs": ("stored_bytes", "sum(c.size_bytes)")}

# Months are those of UTC. Offline models cost nothing, so they do not count.
COUNT_TOKENS = """
CREATE FUNCTION count_tokens() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO tenant_months AS t (tenant_id, month, model_tokens)
  SELECT c.tenant_id, date_trunc('month', now() AT TIME ZONE 'UTC')::date, sum(c.tokens_in + c.tokens_out)
    FROM changed c JOIN model_profiles m ON m.id = c.profile_id
   WHERE m.provider <> 'offline' GROUP BY c.tenant_id
  ON CONFLICT (tenant_id, month) DO UPDATE SET model_tokens = t.model_tokens + excluded.model_tokens;
  RETURN NULL;
END
$$
"""

FILL = (
    """INSERT INTO tenant_totals (tenant_id, documents, stored_bytes)
       SELECT t.id, (SELECT count(*) FROM documents d WHERE d.tenant_id = t.id),
              (SELECT coalesce(sum(b.size_bytes), 0) FROM blobs b WHERE b.tenant_id = t.id) FROM tenants t""",
    """INSERT INTO tenant_months (tenant_id, month, model_tokens)
       SELECT u.tenant_id, date_trunc('month', u.created_at AT TIME ZONE 'UTC')::date, sum(u.tokens_in + u.tokens_out)
         FROM usage_events u JOIN model_profiles m ON m.id = u.profile_id
        WHERE m.provider <> 'offline' GROUP BY 1, 2""",
)

# Which version a free worker takes next: of the tenant with the fewest running, then of the one served longest ago.
# A tenant that is suspended, at its limit of concurrent ingestions or over its budget is passed over; `own` is the version
# that the message named, which only matters where its worker died. What is chosen is marked, so that no two workers get it.
NEXT_WORK = """
CREATE FUNCTION next_work(wanted text, own_tenant uuid, own uuid)
RETURNS TABLE (tenant_id uuid, workspace_id uuid, version_id uuid)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  turn record;
  named uuid;
  this_month date := date_trunc('month', now() AT TIME ZONE 'UTC')::date;
BEGIN
  RETURN QUERY
    SELECT s.tenant_id, s.workspace_id, s.version_id FROM index_states s
     WHERE s.tenant_id = own_tenant AND s.version_id = own AND s.engine = wanted
       AND s.state = 'running' AND s.lease_expires_at < clock_timestamp();
  IF FOUND THEN RETURN; END IF;
  FOR turn IN
    WITH RECURSIVE waiting (id) AS (
      (SELECT s.tenant_id FROM index_states s WHERE s.engine = wanted AND s.state = 'queued' ORDER BY s.tenant_id LIMIT 1)
      UNION ALL
      SELECT (SELECT s.tenant_id FROM index_states s
               WHERE s.engine = wanted AND s.state = 'queued' AND s.tenant_id > w.id ORDER BY s.tenant_id LIMIT 1)
        FROM waiting w WHERE w.id IS NOT NULL
    )
    SELECT w.id, p.concurrent_ingestions AS at_once, m.model_tokens >= p.model_tokens_per_month AS is_spent
      FROM waiting w
      JOIN tenants t ON t.id = w.id AND t.status = 'active'
      LEFT JOIN plans p ON p.name = t.plan
      LEFT JOIN tenant_months m ON m.tenant_id = w.id AND m.month = this_month
      LEFT JOIN tenant_turns x ON x.tenant_id = w.id AND x.engine = wanted
     ORDER BY (SELECT count(*) FROM index_states r
                WHERE r.tenant_id = w.id AND r.engine = wanted AND r.state = 'running'), x.last_turn NULLS FIRST,
              w.id = own_tenant DESC
  LOOP
    IF turn.at_once IS NOT NULL THEN
      -- One lock for all of them: with one a tenant, two workers could wait for each other.
      PERFORM pg_advisory_xact_lock(hashtextextended('turns', 0));
      IF turn.at_once <= (SELECT count(*) FROM index_states r WHERE r.tenant_id = turn.id
                           AND ((r.state = 'running' AND r.lease_expires_at >= clock_timestamp())
                             OR (r.state = 'queued' AND r.stage = 'starting'
                                 AND r.changed_at > clock_timestamp() - interval '30 seconds'))) THEN
        CONTINUE;
      END IF;
    END IF;
    -- The version that the message named, where it is its own tenant's turn; else the oldest.
    named := CASE WHEN turn.id = own_tenant THEN own END;
    LOOP
      RETURN QUERY
        UPDATE index_states s SET stage = 'starting', changed_at = clock_timestamp()
          FROM (SELECT q.tenant_id, q.version_id FROM index_states q
                 WHERE q.tenant_id = turn.id AND q.engine = wanted AND q.state = 'queued'
                   AND (named IS NULL OR q.version_id = named)
                   AND ((q.stage IN ('queued', 'waiting_for_budget')
                         AND (q.attempts = 0
                              OR q.changed_at < clock_timestamp()
                                 - least(60, 2.5 * 2 ^ (q.attempts - 1)) * interval '1 second'))
                     OR (q.stage <> 'waiting_for_workspace' AND q.changed_at < clock_timestamp() - interval '30 seconds')
                     -- Called by name: its pause is over, or its workspace is free.
                     OR (q.stage <> 'starting' AND q.version_id = own))
                   AND (wanted <> 'graph' OR EXISTS (
                         SELECT 1 FROM index_states l WHERE l.tenant_id = q.tenant_id AND l.version_id = q.version_id
                            AND l.engine = 'lazy' AND l.state = 'ready'))
                   AND (turn.is_spent IS NOT TRUE OR NOT EXISTS (
                         SELECT 1 FROM workspaces w JOIN model_profiles m
                             ON m.provider <> 'offline'
                            AND m.id IN (w.embedding_profile_id, CASE WHEN wanted = 'graph' THEN w.chat_profile_id END)
                          WHERE w.tenant_id = q.tenant_id AND w.id = q.workspace_id))
                 ORDER BY q.queued_at LIMIT 1 FOR UPDATE SKIP LOCKED) chosen
         WHERE s.tenant_id = chosen.tenant_id AND s.version_id = chosen.version_id AND s.engine = wanted
        RETURNING s.tenant_id, s.workspace_id, s.version_id;
      IF FOUND THEN
        INSERT INTO tenant_turns AS x (tenant_id, engine, last_turn) VALUES (turn.id, wanted, clock_timestamp())
          ON CONFLICT (tenant_id, engine) DO UPDATE SET last_turn = excluded.last_turn;
        RETURN;
      END IF;
      EXIT WHEN named IS NULL;
      named := NULL;
    END LOOP;
    IF turn.is_spent AND turn.id = own_tenant THEN
      UPDATE index_states s SET stage = 'waiting_for_budget'
       WHERE s.tenant_id = own_tenant AND s.version_id = own AND s.engine = wanted
         AND s.state = 'queued' AND s.stage = 'queued';
    END IF;
  END LOOP;
END
$$
"""
NEXT_WORK_SIGNATURE = "next_work(text, uuid, uuid)"

FIND_API_KEY = """
CREATE FUNCTION find_api_key(wanted text)
RETURNS TABLE (id uuid, tenant_id uuid, tenant_status text, workspace_id uuid, role text, secret_hash bytea,
               expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz{more})
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT k.id, k.tenant_id, t.status, k.workspace_id, k.role, k.secret_hash, k.expires_at, k.revoked_at, k.last_used_at{value}
    FROM api_keys k JOIN tenants t ON t.id = k.tenant_id{join}
   WHERE k.prefix = wanted
$$
"""


def upgrade() -> None:
    op.create_table(
        "plans",
        sa.Column("name", sa.TEXT(), nullable=False),
        *(sa.Column(limit, sa.BigInteger(), nullable=True) for limit in LIMITS),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_plans")),
    )
    for statement in (
        "ALTER TABLE plans ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE plans FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY reading ON plans FOR SELECT TO {APP_ROLE}, {ENGINE_ROLE} USING (true)",
        f"CREATE POLICY operation ON plans TO {APP_ROLE} USING ({OPERATING}) WITH CHECK ({OPERATING})",
        f"CREATE POLICY operator ON plans TO {OWNER_ROLE} USING (true) WITH CHECK (true)",
        f"GRANT SELECT, INSERT, UPDATE ON plans TO {APP_ROLE}",
    ):
        op.execute(statement)
    op.add_column("tenants", sa.Column("plan", sa.TEXT(), nullable=True))
    op.create_foreign_key(op.f("fk_tenants_plan"), "tenants", "plans", ["plan"], ["name"])
    _create_counters()
    op.create_index(
        "ix_index_states_turn", "index_states", ["engine", "tenant_id", "queued_at"], unique=False,
        postgresql_where=sa.text("state = 'queued'"),
    )  # fmt: skip
    op.create_index(
        "ix_index_states_running", "index_states", ["tenant_id", "engine"], unique=False,
        postgresql_where=sa.text("state = 'running'"),
    )  # fmt: skip
    op.execute(NEXT_WORK)
    op.execute(f"REVOKE ALL ON FUNCTION {NEXT_WORK_SIGNATURE} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {NEXT_WORK_SIGNATURE} TO {APP_ROLE}")
    _replace_find_api_key(
        more=", requests_per_minute bigint",
        value=", p.requests_per_minute",
        join=" LEFT JOIN plans p ON p.name = t.plan",
    )


def downgrade() -> None:
    _replace_find_api_key(more="", value="", join="")
    op.execute(f"DROP FUNCTION {NEXT_WORK_SIGNATURE}")
    op.drop_index("ix_index_states_running", table_name="index_states")
    op.drop_index("ix_index_states_turn", table_name="index_states")
    for table in (*STORED, "usage_events"):
        for event in ("insert", "delete"):
            op.execute(f"DROP TRIGGER IF EXISTS count_{event} ON {table}")
    for table in STORED:
        op.execute(f"DROP FUNCTION count_{table}()")
    op.execute("DROP FUNCTION count_tokens()")
    for table in ("tenant_turns", "tenant_months", "tenant_totals"):
        op.drop_table(table)
    op.drop_constraint(op.f("fk_tenants_plan"), "tenants")
    op.drop_column("tenants", "plan")
    op.drop_table("plans")


def _create_counters() -> None:
    counters = {
        "tenant_totals": (
            [
                sa.Column("documents", sa.BigInteger(), server_default="0", nullable=False),
                sa.Column("stored_bytes", sa.BigInteger(), server_default="0", nullable=False),
            ],
            ["tenant_id"],
        ),
        "tenant_months": (
            [
                sa.Column("month", sa.Date(), nullable=False),
                sa.Column("model_tokens", sa.BigInteger(), nullable=False),
            ],
            ["tenant_id", "month"],
        ),
        "tenant_turns": (
            [
                sa.Column("engine", sa.TEXT(), nullable=False),
                sa.Column("last_turn", sa.DateTime(timezone=True), nullable=False),
            ],
            ["tenant_id", "engine"],
        ),
    }
    for table, (columns, key) in counters.items():
        op.create_table(
            table,
            sa.Column("tenant_id", sa.Uuid(), nullable=False),
            *columns,
            sa.ForeignKeyConstraint(
                ["tenant_id"], ["tenants.id"], name=op.f(f"fk_{table}_tenant_id"), ondelete="CASCADE"
            ),
            sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{table}")),
        )
        for statement in fence_by_tenant(table):
            op.execute(statement)
        op.execute(f"GRANT SELECT ON {table} TO {APP_ROLE}")
    for statement in FILL:
        op.execute(statement)
    for table, (column, amount) in STORED.items():
        op.execute(COUNT_STORED.format(table=table, column=column, amount=amount))
        op.execute(f"REVOKE ALL ON FUNCTION count_{table}() FROM PUBLIC")
        _count_on(table, "insert", "NEW", f"count_{table}")
        _count_on(table, "delete", "OLD", f"count_{table}")
    op.execute(COUNT_TOKENS)
    op.execute("REVOKE ALL ON FUNCTION count_tokens() FROM PUBLIC")
    _count_on("usage_events", "insert", "NEW", "count_tokens")


def _count_on(table: str, event: str, rows: str, function: str) -> None:
    op.execute(
        f"CREATE TRIGGER count_{event} AFTER {event.upper()} ON {table} REFERENCING {rows} TABLE AS changed"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
    )


def _replace_find_api_key(*, more: str, value: str, join: str) -> None:
    op.execute("DROP FUNCTION find_api_key(text)")
    op.execute(FIND_API_KEY.format(more=more, value=value, join=join))
    op.execute("REVOKE ALL ON FUNCTION find_api_key(text) FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION find_api_key(text) TO {APP_ROLE}")
