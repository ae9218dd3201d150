"""What stands in a workspace's graph, read past the code under test, from whichever store it is in."""

import json
from typing import Any

from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.pool import EngineDatabase, in_graph, inside

Properties = dict[str, Any]

NODES = "SELECT id, properties::text AS properties FROM lightrag_graph_nodes"
EDGES = "SELECT src_id, tgt_id, properties::text AS properties FROM lightrag_graph_edges"
AGE_NODES = 'SELECT properties FROM {graph}."base"'
AGE_EDGES = """
SELECT a.properties AS source, b.properties AS target, e.properties
  FROM {graph}."DIRECTED" e JOIN {graph}."base" a ON a.id = e.start_id JOIN {graph}."base" b ON b.id = e.end_id"""


async def graph_nodes(pool: EngineDatabase, ref: WorkspaceRef) -> dict[str, Properties]:
    with inside(ref):
        if ref.graph_store == "table":
            return {row["id"]: json.loads(row["properties"]) for row in await pool.fetch(NODES)}
        found = [json.loads(row["properties"]) for row in await _of_graph(pool, ref, AGE_NODES)]
    assert len({row["entity_id"] for row in found}) == len(found)
    return {row["entity_id"]: row for row in found}


async def graph_edges(pool: EngineDatabase, ref: WorkspaceRef) -> dict[tuple[str, str], Properties]:
    """By ends in code point order."""
    with inside(ref):
        if ref.graph_store == "table":
            return {(row["src_id"], row["tgt_id"]): json.loads(row["properties"]) for row in await pool.fetch(EDGES)}
        rows = await _of_graph(pool, ref, AGE_EDGES)
    found = {}
    for row in rows:
        ends = sorted(json.loads(row[end])["entity_id"] for end in ("source", "target"))
        assert tuple(ends) not in found
        found[ends[0], ends[1]] = json.loads(row["properties"])
    return found


async def _of_graph(pool: EngineDatabase, ref: WorkspaceRef, statement: str) -> Any:
    graph = f"{ref.engine_name}_chunk_entity_relation"
    if not (await pool.fetch("SELECT to_regnamespace($1) IS NOT NULL AS there", graph))[0]["there"]:
        return ()
    with in_graph(graph):
        return await pool.fetch(statement.format(graph=graph))
