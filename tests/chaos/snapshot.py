"""All that two runs must agree on, row by row, with everything left out that differs from run to run by nature.

Ids of versions are replaced by the names of their documents, and what LightRAG joins in the order of its merges is
compared as a set of parts.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import asyncpg

Snapshot = dict[str, Counter[str]]

# Clocks, random ids, digests of texts that hold an id, and vectors (their texts are compared).
LEFT_OUT = {
    "workspace", "create_time", "update_time", "created_at", "updated_at", "track_id", "metadata", "content_hash",
    "content_vector", "queryparam", "original_prompt", "doc_name",
}  # fmt: skip
PARTS = re.compile(r"<SEP>|\n|\t")
VERSION = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

NAMES = """
SELECT v.id::text, w.name || '/' || d.filename AS name FROM versions v
  JOIN documents d ON (d.tenant_id, d.id) = (v.tenant_id, v.document_id)
  JOIN workspaces w ON (w.tenant_id, w.id) = (v.tenant_id, v.workspace_id)
 WHERE v.tenant_id = (SELECT id FROM tenants WHERE name = $1)"""

ENGINE_TABLES = """
SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relname LIKE 'lightrag%'
 ORDER BY relname"""

ENGINE_ROWS = """
SELECT w.name AS place, to_jsonb(t) - $2::text[] AS row FROM {table} t
  JOIN workspaces w ON t.workspace = 'w_' || replace(w.id::text, '-', '')
 WHERE w.tenant_id = (SELECT id FROM tenants WHERE name = $1) {condition}"""

# Ours, by tables: the columns that say the same in every run.
OUR_ROWS = {
    "documents": "SELECT w.name, d.filename, d.title, s.status FROM documents d"
    " JOIN document_statuses s ON (s.tenant_id, s.document_id) = (d.tenant_id, d.id)"
    " JOIN workspaces w ON (w.tenant_id, w.id) = (d.tenant_id, d.workspace_id)",
    "live_versions": "SELECT version_id::text, engine FROM live_versions",
    "index_states": "SELECT version_id::text, engine, state, cleanliness, chunks_done, chunks_total FROM index_states",
    "chunks": "SELECT version_id::text, ordinal, first_passage, last_passage, tokens, state FROM chunks",
    "mentions": "SELECT version_id::text, chunk_ordinal, name, target, type, description, keywords FROM mentions",
    "passages": "SELECT version_id::text, ordinal, text, char_start, char_end, heading_path FROM passages",
    "lazy_passages": "SELECT p.version_id::text, p.ordinal, l.keys, l.flags, l.sentences, l.surfaces, l.terms"
    " FROM lazy_passages l JOIN passages p ON p.id = l.passage_id",
    "concept_postings": "SELECT p.version_id::text, p.ordinal, l.key, l.flags"
    " FROM concept_postings l JOIN passages p ON p.id = l.passage_id",
    "term_postings": "SELECT p.version_id::text, p.ordinal, l.key, l.frequency, l.length"
    " FROM term_postings l JOIN passages p ON p.id = l.passage_id",
}
TENANT = " tenant_id = (SELECT id FROM tenants WHERE name = $1)"


async def take_snapshot(connection: asyncpg.Connection, tenant: str) -> Snapshot:
    """The tenant's rows in every table of the engines, each as one line of JSON."""
    names = {row["id"]: row["name"] for row in await connection.fetch(NAMES, tenant)}
    snapshot: Snapshot = {}
    for table, query in OUR_ROWS.items():
        alias = "p." if " passages p " in query else "d." if " documents d" in query else ""
        rows = await connection.fetch(f"{query} WHERE {alias}{TENANT.strip()}", tenant)
        snapshot[table] = Counter(_line(dict(row), names) for row in rows)
    for (table,) in await connection.fetch(ENGINE_TABLES):
        # Summaries and keywords are asked for in an order of merging; what matters of them is in the graph.
        condition = "AND t.cache_type = 'extract'" if table.endswith("_cache") else ""
        query = ENGINE_ROWS.format(table=table, condition=condition)
        rows = await connection.fetch(query, tenant, list(LEFT_OUT))
        snapshot[table] = Counter(_line({"place": row["place"], **json.loads(row["row"])}, names) for row in rows)
    return snapshot


def differences(expected: Snapshot, found: Snapshot, *, shown: int = 4) -> list[str]:
    """What is missing or too much, a few rows of each table; empty where both say the same."""
    lines: list[str] = []
    for table in sorted(expected.keys() | found.keys()):
        missing = expected.get(table, Counter()) - found.get(table, Counter())
        extra = found.get(table, Counter()) - expected.get(table, Counter())
        if missing or extra:
            lines.append(f"{table}: {missing.total()} rows missing, {extra.total()} too many")
            lines += [f"  - {row[:600]}" for row in sorted(missing)[:shown]]
            lines += [f"  + {row[:600]}" for row in sorted(extra)[:shown]]
    return lines


def _line(row: Mapping[str, Any], names: Mapping[str, str]) -> str:
    return json.dumps(_plain(row, names), ensure_ascii=False, sort_keys=True, default=str)


def _plain(value: Any, names: Mapping[str, str]) -> Any:
    """`value` without ids and without an order that depends on who merged first."""
    if isinstance(value, Mapping):
        return {key: _plain(part, names) for key, part in value.items() if key not in LEFT_OUT}
    if isinstance(value, str):
        named = VERSION.sub(lambda match: names.get(match.group(), "a version that is gone"), value)
        parts = PARTS.split(named)
        return sorted(parts) if len(parts) > 1 else named
    if isinstance(value, Iterable):
        return sorted((_plain(part, names) for part in value), key=lambda part: json.dumps(part, default=str))
    return value
