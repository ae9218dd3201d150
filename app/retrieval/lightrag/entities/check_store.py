"""Finds where the graph, its vectors, the lists of chunks, the mentions and our own tables do not agree."""

# ruff: noqa: S608 - put together from constants

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.graph_store import MANUAL, NAMESPACE, SEPARATOR
from app.retrieval.lightrag.reads import Reads
from app.retrieval.lightrag.rows_store import Rows

# The id of the chunk of a mention `m`, as Python's `:03d` writes it: lpad alone would cut longer numbers.
CHUNK_ID = "m.version_id || '-chunk-' || lpad(m.chunk_ordinal::text, greatest(3, length(m.chunk_ordinal::text)), '0')"
# What the graph holds, for each check: from the two plain tables, or handed over by who read it elsewhere.
_ASKED = "WITH asked AS (SELECT $1::text AS workspace, $2::uuid AS workspace_id)"
_TABLES = f"""{_ASKED}, graph_nodes AS (
  SELECT id, properties->>'description' AS description FROM lightrag_graph_nodes
   WHERE workspace = $1 AND namespace = '{NAMESPACE}'
), graph_pairs AS (
  SELECT src_id || '<SEP>' || tgt_id AS id FROM lightrag_graph_edges WHERE workspace = $1 AND namespace = '{NAMESPACE}'
)"""
_GIVEN = f"""{_ASKED}, graph_nodes AS (SELECT * FROM unnest($3::text[], $4::text[]) n (id, description)),
graph_pairs AS (SELECT * FROM unnest($5::text[]) p (id))"""
_IN_GRAPH = "SELECT id FROM graph_nodes"
_PAIRS = "SELECT id FROM graph_pairs"
_VECTOR_PAIRS = """
SELECT LEAST(source_id COLLATE "C", target_id COLLATE "C") || '<SEP>' || GREATEST(source_id COLLATE "C", target_id COLLATE "C") AS id
  FROM lightrag_vdb_relation_{suffix} WHERE workspace = $1"""
_DANGLING = """
SELECT t.id FROM {table} t WHERE t.workspace = $1 AND EXISTS (
  SELECT 1 FROM jsonb_array_elements_text(t.chunk_ids) c WHERE c <> '{manual}'
     AND NOT EXISTS (SELECT 1 FROM lightrag_doc_chunks d WHERE d.workspace = $1 AND d.id = c))"""

# Kind of drift, and the names (relations as source<SEP>target) that have it. A relation's list of chunks may stand under a
# shortened key where both names are long, so those are left to the pairs that are short.
ENTITY_CHECKS: Mapping[str, str] = {
    "entity_without_vector": f"{_IN_GRAPH} EXCEPT SELECT entity_name FROM lightrag_vdb_entity_{{suffix}} WHERE workspace = $1",
    "entity_without_chunks": f"{_IN_GRAPH} EXCEPT SELECT id FROM lightrag_entity_chunks WHERE workspace = $1",
    "entity_with_lost_chunks": _DANGLING.format(table="lightrag_entity_chunks", manual=MANUAL),
    "entity_with_untracked_mentions": f"""
SELECT DISTINCT m.name AS id FROM mentions m JOIN lightrag_entity_chunks t ON t.workspace = $1 AND t.id = m.name
 WHERE m.workspace_id = $2 AND m.target IS NULL
   AND NOT t.chunk_ids ? ({CHUNK_ID})""",
    "entity_with_other_text": """
SELECT v.entity_name AS id FROM lightrag_vdb_entity_{suffix} v
  JOIN graph_nodes n ON n.id = v.entity_name
 WHERE v.workspace = $1
   AND NOT starts_with(v.entity_name || E'\\n' || coalesce(n.description, ''), left(v.content, 1000))""",
}
RELATION_CHECKS: Mapping[str, str] = {
    "relation_without_vector": f"({_PAIRS}) EXCEPT ({_VECTOR_PAIRS})",
    "relation_without_chunks": f"SELECT id FROM ({_PAIRS} EXCEPT SELECT id FROM lightrag_relation_chunks WHERE workspace = $1) p WHERE length(id) <= 512",
    "relation_with_lost_chunks": _DANGLING.format(table="lightrag_relation_chunks", manual=MANUAL),
}
# What belongs to nothing that is in the graph.
ORPHAN_CHECKS: Mapping[str, str] = {
    "vector_without_entity": f"SELECT entity_name AS id FROM lightrag_vdb_entity_{{suffix}} WHERE workspace = $1 EXCEPT {_IN_GRAPH}",
    "vector_without_relation": f"({_VECTOR_PAIRS}) EXCEPT ({_PAIRS})",
    "chunks_without_entity": f"SELECT id FROM lightrag_entity_chunks WHERE workspace = $1 EXCEPT {_IN_GRAPH}",
    "chunks_without_relation": f"SELECT id FROM lightrag_relation_chunks WHERE workspace = $1 AND length(id) < 512 EXCEPT ({_PAIRS})",
    "mention_without_entity": f"""
SELECT name AS id FROM mentions WHERE workspace_id = $2 EXCEPT {_IN_GRAPH}""",
    "edit_without_entity": f"""
SELECT name AS id FROM entity_edits WHERE workspace_id = $2 EXCEPT {_IN_GRAPH}""",
    "spelling_without_entity": f"""
SELECT target AS id FROM entity_aliases WHERE workspace_id = $2 AND source = 'spelling' EXCEPT {_IN_GRAPH}""",
}


@dataclass(frozen=True)
class Drift:
    """Names by kind of drift."""

    found: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def names(self, kinds: Mapping[str, str]) -> set[str]:
        return {name for kind in kinds for name in self.found.get(kind, ())}

    def __bool__(self) -> bool:
        return any(self.found.values())


async def find_drift(reads: Reads, ref: WorkspaceRef, suffix: str, graph: Rows) -> Drift:
    """Compare everything; each check is one statement. Runs inside the workspace's fence."""
    found, given = {}, () if ref.graph_store == "table" else await _read_whole(graph)
    for kind, statement in {**ENTITY_CHECKS, **RELATION_CHECKS, **ORPHAN_CHECKS}.items():
        sql = f"{_GIVEN if given else _TABLES} {statement.replace('{suffix}', suffix)}"
        rows = await reads.fetch(sql, ref.engine_name, ref.workspace_id, *given)
        found[kind] = tuple(sorted(row["id"] for row in rows))
    return Drift(found)


async def _read_whole(graph: Rows) -> tuple[list[str], list[str], list[str]]:
    """Names of all entities, their descriptions, and all relations."""
    await graph.prepare()
    nodes = [row async for page in graph.pages("nodes") for row in page]
    pairs = [SEPARATOR.join(key) async for page in graph.pages("edges") for key, _ in page]
    return [key[0] for key, _ in nodes], [said.get("description") or "" for _, said in nodes], pairs


_MENTIONED = f"""
SELECT named.name, array_agg(DISTINCT {CHUNK_ID}) AS chunks
  FROM mentions m CROSS JOIN LATERAL (VALUES (m.name), (m.target)) named (name)
 WHERE m.workspace_id = $1 AND named.name = ANY ($2)
 GROUP BY named.name"""


async def mentioned_chunks(reads: Reads, ref: WorkspaceRef, names: Iterable[str]) -> dict[str, list[str]]:
    """Ids of the chunks that speak of each entity or its relations, as the mentions say."""
    rows = await reads.fetch(_MENTIONED, ref.workspace_id, list(names))
    return {row["name"]: sorted(row["chunks"]) for row in rows}


_RELATIONS_LEFT = """
SELECT source_id AS one, target_id AS other FROM lightrag_vdb_relation_{suffix}
 WHERE workspace = $1 AND (source_id = ANY ($2) OR target_id = ANY ($2))
UNION
SELECT split_part(id, '<SEP>', 1), split_part(id, '<SEP>', 2) FROM lightrag_relation_chunks
 WHERE workspace = $1 AND (split_part(id, '<SEP>', 1) = ANY ($2) OR split_part(id, '<SEP>', 2) = ANY ($2))"""


async def relations_left(reads: Reads, ref: WorkspaceRef, suffix: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """Relations of these entities by their vectors and lists of chunks, whether or not the graph still has them."""
    rows = await reads.fetch(_RELATIONS_LEFT.format(suffix=suffix), ref.engine_name, sorted(names))
    return sorted({(min(row["one"], row["other"]), max(row["one"], row["other"])) for row in rows})
