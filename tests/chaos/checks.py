"""What must be true of an installation at rest, whatever was done to it; each check names what is wrong."""

import asyncio
import re
import time
from pathlib import Path

import asyncpg

from tests.chaos.stack import ChaosStack

COLUMNS = """
SELECT c.table_name, array_agg(c.column_name::text) AS columns
  FROM information_schema.columns c JOIN pg_class k ON k.relname = c.table_name
  JOIN pg_namespace n ON n.oid = k.relnamespace AND n.nspname = 'public'
 WHERE c.table_schema = 'public' AND k.relkind IN ('r', 'p') AND NOT k.relispartition
 GROUP BY c.table_name"""

# Per column by which a row can belong to something: what it must then find, with `t` for the row.
OWNERS = {
    "tenant_id": "SELECT 1 FROM tenants o WHERE o.id = t.tenant_id",
    "workspace_id": "SELECT 1 FROM workspaces o WHERE o.id = t.workspace_id AND o.tenant_id = t.tenant_id",
    "document_id": "SELECT 1 FROM documents o WHERE o.id = t.document_id AND o.workspace_id = t.workspace_id",
    "version_id": "SELECT 1 FROM versions o WHERE o.id = t.version_id AND o.tenant_id = t.tenant_id",
    "passage_id": "SELECT 1 FROM passages o WHERE o.id = t.passage_id",
    "blob_id": "SELECT 1 FROM blobs o WHERE o.id = t.blob_id",
}
NUMBERED = "SELECT 1 FROM workspaces o WHERE o.number = t.workspace"
ENGINE = "SELECT 1 FROM workspaces o WHERE 'w_' || replace(o.id::text, '-', '') = t.workspace"
# What was spent, done or told outlives what it was about.
LASTING = re.compile(r"usage|audit|event|webhook|deliver|idempot|tenants|model_profiles|alembic")

# Engine rows name versions inside their values. A graph version must be one that the graph trusts.
VERSION_TEXT = r"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
TRUSTED = "SELECT 1 FROM live_versions o WHERE o.engine = 'graph' AND o.version_id::text = v.id[1]"
KNOWN = "SELECT 1 FROM versions o WHERE o.id::text = v.id[1]"


HISTORIES = """
SELECT s.version_id, s.engine, array_agg(t.from_state || '>' || t.to_state ORDER BY t.ordinal DESC) AS ends
  FROM index_states s
  JOIN (SELECT *, lag(to_state) OVER each_index AS before, lag(ordinal) OVER each_index AS ordinal_before
          FROM index_transitions
        WINDOW each_index AS (PARTITION BY tenant_id, version_id, engine ORDER BY ordinal)) t
    ON (t.tenant_id, t.version_id, t.engine) = (s.tenant_id, s.version_id, s.engine)
 GROUP BY s.version_id, s.engine, s.state
HAVING bool_or(t.ordinal > 1 AND (t.from_state IS DISTINCT FROM t.before OR t.ordinal <> t.ordinal_before + 1))
    OR (array_agg(t.to_state ORDER BY t.ordinal DESC))[1] <> s.state"""


async def unowned_rows(connection: asyncpg.Connection) -> list[str]:
    """Rows of any table that belong to no tenant, workspace, document, version or passage that exists."""
    found: list[str] = []
    for table, columns in await connection.fetch(COLUMNS):
        if LASTING.search(table):
            continue
        wanted = {column: query for column, query in OWNERS.items() if column in columns}
        if "workspace" in columns:
            wanted["workspace"] = ENGINE if table.startswith("lightrag") else NUMBERED
        if "workspace_id" not in columns:
            wanted.pop("document_id", None)
        for column, owner in wanted.items():
            count = await connection.fetchval(
                f'SELECT count(*) FROM "{table}" t WHERE t."{column}" IS NOT NULL AND NOT EXISTS ({owner})'
            )
            if count:
                found.append(f"{count} rows of {table} belong to no {column} that exists")
        if table.startswith("lightrag"):
            found += await _untrusted(connection, table)
    return found


async def _untrusted(connection: asyncpg.Connection, table: str) -> list[str]:
    # An answer of the model outlives a failed version, for the sake of a retry.
    owner = KNOWN if table.endswith("_cache") else TRUSTED
    rows = await connection.fetch(
        f"SELECT DISTINCT v.id[1] AS id FROM {table} t, regexp_matches((to_jsonb(t) - 'return_value')::text, $1, 'g')"
        f" AS v (id) WHERE NOT EXISTS ({owner})",
        VERSION_TEXT,
    )
    return [
        f"{table} names version {row['id']}, which {'is gone' if owner == KNOWN else 'no query may use'}"
        for row in rows
    ]


async def open_ends(connection: asyncpg.Connection) -> list[str]:
    """Leases held, work that is not final, deletions and removals that are not done."""
    queries = {
        "workspace leases are held": "SELECT count(*) FROM workspace_leases WHERE owner IS NOT NULL",
        "index states have a lease": "SELECT count(*) FROM index_states WHERE lease_expires_at IS NOT NULL",
        "index states are not final": "SELECT count(*) FROM index_states WHERE state IN ('queued', 'running')",
        "graphs are still being cleaned": "SELECT count(*) FROM index_states WHERE cleanliness <> 'clean'",
        "versions have been replaced and are still there": "SELECT count(*) FROM versions old JOIN versions v"
        " ON v.document_id = old.document_id AND v.ordinal > old.ordinal",
        "documents are still being deleted": "SELECT count(*) FROM documents WHERE deleting_at IS NOT NULL",
        "transactions are open": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%' AND xact_start < now() - interval '10 s'",
    }
    counts = {name: await connection.fetchval(query) for name, query in queries.items()}
    return [f"{count} {name}" for name, count in counts.items() if count]


async def broken_histories(connection: asyncpg.Connection) -> list[str]:
    """Histories of indexes that leave out a transition, or do not end in the state that the index is in."""
    rows = await connection.fetch(HISTORIES)
    return [f"the history of {row['engine']} of version {row['version_id']} ends {row['ends']}" for row in rows]


async def stray_files(stack: ChaosStack, patience_seconds: float = 90) -> list[str]:
    """Originals without a row, rows without an original, and temporary files, once the sweeper had its time for them."""
    deadline = time.monotonic() + patience_seconds
    while True:
        stored, temporary = _files(stack.folder)
        known = {row["key"] for row in await stack.fetch("SELECT key FROM blobs")}
        found = [
            *(f"the original {key} has no row" for key in sorted(stored - known)),
            *(f"the original {key} is missing" for key in sorted(known - stored)),
            *(f"the temporary folder {name} is left" for name in sorted(temporary)),
        ]
        if not found or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.5)


def _files(folder: Path) -> tuple[set[str], set[str]]:
    """Keys of the originals in an installation's folder, and names of temporary folders."""
    blobs = folder / "blobs"
    stored = {str(path.relative_to(blobs)) for path in blobs.rglob("*") if path.is_file()}
    return stored, {path.name for path in (folder / "tmp").iterdir() if path.name.startswith("trellis-")}
