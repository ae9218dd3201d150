"""Everything that the graph engine holds of a workspace but times, raw answers and what belongs to documents alone."""

import json
from typing import Any

from app.retrieval.lightrag.age.rows import AgeRows
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.rows_store import KINDS
from tests.retrieval.lightrag.doubles import SUFFIX, Corpus

_TABLES = {
    "nodes": "SELECT id, properties::text FROM lightrag_graph_nodes WHERE workspace = $1",
    "edges": "SELECT src_id, tgt_id, properties::text FROM lightrag_graph_edges WHERE workspace = $1",
    "entity_chunks": "SELECT id, chunk_ids::text, count FROM lightrag_entity_chunks WHERE workspace = $1",
    "relation_chunks": "SELECT id, chunk_ids::text, count FROM lightrag_relation_chunks WHERE workspace = $1",
    "entity_vectors": (
        "SELECT id, entity_name, content, content_vector::text, chunk_ids, file_path"
        f" FROM lightrag_vdb_entity_{SUFFIX} WHERE workspace = $1"
    ),
    "relation_vectors": (
        "SELECT id, source_id, target_id, content, content_vector::text, chunk_ids, file_path"
        f" FROM lightrag_vdb_relation_{SUFFIX} WHERE workspace = $1"
    ),
    "anchors": "SELECT id, entity_names::text FROM lightrag_full_entities WHERE workspace = $1",
    "pairs": "SELECT id, relation_pairs::text FROM lightrag_full_relations WHERE workspace = $1",
}
_OURS = {
    "mentions": (
        "SELECT version_id, chunk_ordinal, name, target, type, description, keywords FROM mentions WHERE workspace_id = $1"
    ),
    "aliases": "SELECT alias, target, source FROM entity_aliases WHERE workspace_id = $1",
    "edits": "SELECT name, target, fields::text, is_created FROM entity_edits WHERE workspace_id = $1",
}


async def graph_rows(pool: EngineDatabase, corpus: Corpus) -> dict[str, list[Any]]:
    """Rows by table, in an order that does not depend on when they were written."""
    ref = corpus.workspace.ref
    with inside(ref):
        found: dict[str, Any] = {name: await pool.fetch(query, ref.engine_name) for name, query in _TABLES.items()}
        found |= {name: await pool.fetch(query, ref.workspace_id) for name, query in _OURS.items()}
        if ref.graph_store == "age":
            rows = AgeRows(pool, ref)
            for kind in KINDS:
                pages = [page async for page in rows.pages(kind)]
                found[kind] = [
                    (*key, json.dumps(dict(said), ensure_ascii=False)) for page in pages for key, said in page
                ]
    return {name: sorted((_plain(tuple(row)) for row in rows), key=str) for name, rows in found.items()}


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_without_times(value) for value in row)


def _without_times(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("{"):
        return json.dumps(
            {name: found for name, found in json.loads(value).items() if name not in ("created_at", "update_time")},
            sort_keys=True,
        )
    return value


def differences(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> dict[str, tuple[list[Any], list[Any]]]:
    """Rows that are in one of both only, by table."""
    return {
        name: (
            [row for row in before[name] if row not in after[name]],
            [row for row in after[name] if row not in before[name]],
        )
        for name in before
        if before[name] != after[name]
    }
