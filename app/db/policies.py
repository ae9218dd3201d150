"""Statements that fence a table: row level security for the runtime roles, and everything for the owner.

The migrations and the registration of embedding profiles (which creates vector tables) use these, so that no table is
fenced in a way of its own.
"""

APP_ROLE = "trellis_app"
ENGINE_ROLE = "trellis_engine"
OWNER_ROLE = "trellis_owner"
# What the roles of all graphs in Apache AGE have in common: its catalog.
GRAPH_ROLE = "trellis_graph"

# A setting that was set in an earlier transaction of the same connection reads as '', not as NULL.
CURRENT_TENANT = "(SELECT NULLIF(current_setting('app.tenant_id', true), '')::uuid)"
OPERATING = "(SELECT current_setting('app.operator', true) = 'on')"
CURRENT_WORKSPACE = "(SELECT NULLIF(current_setting('app.workspace', true), ''))"


def fence(table: str, condition: str, roles: str = f"{APP_ROLE}, {ENGINE_ROLE}") -> list[str]:
    """Row level security on `table`: `roles` see and write the rows that meet `condition`, the owner sees all.

    FORCE binds the owner as well, so that it too acts under a policy that can be read in pg_policy.
    """
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY isolation ON {table} TO {roles} USING ({condition}) WITH CHECK ({condition})",
        f"CREATE POLICY operator ON {table} TO {OWNER_ROLE} USING (true) WITH CHECK (true)",
    ]


def fence_by_tenant(table: str, column: str = "tenant_id") -> list[str]:
    """Rows of the transaction's tenant only; without a tenant, none."""
    return fence(table, f"{column} = {CURRENT_TENANT}")


def fence_by_workspace(table: str) -> list[str]:
    """Rows of the engine's running workspace only (LightRAG's tables carry its name, not the tenant's id)."""
    return fence(table, f"workspace = {CURRENT_WORKSPACE}")


def audit(table: str, subject: str, kind: str, events: str = "INSERT OR UPDATE OR DELETE") -> str:
    """The trigger that writes a change of `table` by a caller into the audit log, in the transaction of the change.

    `subject` is the column that names the row, `kind` what the log calls it. Work of workers is nobody's change: their
    transactions carry no `app.audit`, and the trigger is not run for them.
    """
    return (
        f"CREATE TRIGGER audit AFTER {events} ON {table} FOR EACH ROW"
        " WHEN (coalesce(current_setting('app.audit', true), '') <> '')"
        f" EXECUTE FUNCTION record_change('{subject}', '{kind}')"
    )
