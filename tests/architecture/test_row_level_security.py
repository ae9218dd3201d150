"""Read from the catalog of a migrated database: every table of a tenant is fenced, and runtime roles own nothing."""

from sqlalchemy import text

from app.db.session import Database

# Tables without a tenant: what an operator registers for everybody, and Alembic's own.
SHARED_TABLES = {"alembic_version", "model_profiles"}

TABLES = """
SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity, pg_get_userbyid(c.relowner),
       EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id'),
       EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid
                AND pg_get_expr(p.polqual, p.polrelid) ~ 'app\\.(tenant_id|workspace|operator)')
  FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
"""

FOREIGN_KEYS = """
SELECT c.conrelid::regclass || '.' || c.conname
  FROM pg_constraint c
 WHERE c.contype = 'f' AND c.connamespace = 'public'::regnamespace
   AND EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.conrelid AND a.attname = 'tenant_id')
   AND EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.confrelid AND a.attname = 'tenant_id')
   AND NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.conrelid AND a.attname = 'tenant_id'
                    AND a.attnum = ANY (c.conkey))
"""


async def test_every_table_but_the_shared_ones_is_fenced(owner_database: Database) -> None:
    async with owner_database.system() as session:
        rows = (await session.execute(text(TABLES))).all()
    assert len(rows) > len(SHARED_TABLES)
    unfenced = [
        name
        for name, enabled, forced, _, _, has_policy in rows
        if name not in SHARED_TABLES and not (enabled and forced and has_policy)
    ]
    assert unfenced == []


async def test_a_shared_table_holds_no_rows_of_tenants(owner_database: Database) -> None:
    async with owner_database.system() as session:
        rows = (await session.execute(text(TABLES))).all()
    assert [row[0] for row in rows if row[4] and row[0] in SHARED_TABLES] == []


async def test_runtime_roles_own_nothing(owner_database: Database) -> None:
    async with owner_database.system() as session:
        rows = (await session.execute(text(TABLES))).all()
    assert {row[3] for row in rows} == {"trellis_owner"}


async def test_foreign_keys_between_tables_of_tenants_name_the_tenant(owner_database: Database) -> None:
    """Foreign key checks ignore row level security: a plain key would let one tenant refer to another's row."""
    async with owner_database.system() as session:
        assert list(await session.scalars(text(FOREIGN_KEYS))) == []


# Written by workers and engines only, or by the same statement that changes an audited row; what people say of an answer
# names its author itself, and has to go with the query.
UNAUDITED = {
    "audit_events", "blobs", "chunks", "corpus_versions", "entity_names", "entity_splits", "entity_undo_records", "event_counters", "events", "idempotency_keys", "index_transitions", "lazy_versions", "live_versions", "mentions", "passages", "queries", "query_evidence", "query_feedback", "query_verdicts", "tenant_deletions", "tenant_months", "tenant_totals", "tenant_turns", "theme_concepts", "theme_maps", "theme_passages", "theme_report_sources", "theme_reports", "themes", "usage_events", "webhook_deliveries", "workspace_leases",
}  # fmt: skip

AUDITED = "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'audit' AND tgenabled = 'O'"


async def test_every_table_of_a_tenant_is_audited_or_named_here(owner_database: Database) -> None:
    """A new table that callers change gets `audit` of app/db/policies.py in its migration."""
    async with owner_database.system() as session:
        tables = {row[0] for row in (await session.execute(text(TABLES))).all() if row[4]}
        audited = set(await session.scalars(text(AUDITED)))
    vectors = {table for table in tables if table.startswith("passage_vectors")}
    assert tables - audited - UNAUDITED - vectors == set()
    assert audited & UNAUDITED == set()
