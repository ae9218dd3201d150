"""Whole rows of a graph in Apache AGE, read and written by plain statements on its two tables, for copies in bulk."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.age.cypher import AgeGraph
from app.retrieval.lightrag.age.reading import canonical
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.rows_store import PAGE, Key, Kind, Properties, columns

_PAGES: Mapping[Kind, str] = {
    "nodes": "SELECT id::text AS place, properties FROM {graph}.base WHERE id > $1::text::graphid ORDER BY id LIMIT $2",
    "edges": """
SELECT e.id::text AS place, e.properties, a.properties AS source, b.properties AS target
  FROM (SELECT * FROM {graph}."DIRECTED" WHERE id > $1::text::graphid ORDER BY id LIMIT $2) e
  JOIN {graph}.base a ON a.id = e.start_id JOIN {graph}.base b ON b.id = e.end_id ORDER BY e.id""",
}
_READ: Mapping[Kind, str] = {
    "nodes": """
SELECT a.properties FROM unnest($1::text[]) w (name) JOIN {graph}.base a ON {name_of_a} = to_json(w.name)::text::agtype""",
    "edges": """
SELECT e.properties, a.properties AS source, b.properties AS target
  FROM unnest($1::text[], $2::text[]) w (src, tgt)
  JOIN {graph}.base a ON {name_of_a} = to_json(w.src)::text::agtype
  JOIN {graph}.base b ON {name_of_b} = to_json(w.tgt)::text::agtype
  JOIN {graph}."DIRECTED" e ON (e.start_id = a.id AND e.end_id = b.id) OR (e.start_id = b.id AND e.end_id = a.id)""",
}
_WRITE_NODES = """
WITH wanted AS (SELECT * FROM unnest($1::text[], $2::text[]) w (name, properties)),
     changed AS (UPDATE {graph}.base a SET properties = w.properties::agtype
                   FROM wanted w WHERE {name_of_a} = to_json(w.name)::text::agtype RETURNING w.name)
INSERT INTO {graph}.base (properties)
SELECT w.properties::agtype FROM wanted w WHERE w.name NOT IN (SELECT name FROM changed)"""
_DELETE_EDGES = """
DELETE FROM {graph}."DIRECTED" e USING unnest($1::text[], $2::text[]) w (src, tgt), {graph}.base a, {graph}.base b
 WHERE {name_of_a} = to_json(w.src)::text::agtype AND {name_of_b} = to_json(w.tgt)::text::agtype
   AND ((e.start_id = a.id AND e.end_id = b.id) OR (e.start_id = b.id AND e.end_id = a.id))"""
_WRITE_EDGES = """
INSERT INTO {graph}."DIRECTED" (start_id, end_id, properties)
SELECT a.id, b.id, w.properties::agtype FROM unnest($1::text[], $2::text[], $3::text[]) w (src, tgt, properties)
  JOIN {graph}.base a ON {name_of_a} = to_json(w.src)::text::agtype
  JOIN {graph}.base b ON {name_of_b} = to_json(w.tgt)::text::agtype"""
_DELETE_NODES = """
DELETE FROM {graph}.base a USING unnest($1::text[]) w (name) WHERE {name_of_a} = to_json(w.name)::text::agtype"""


class AgeRows:
    """`Rows` of a workspace's graph."""

    def __init__(self, database: EngineDatabase, ref: WorkspaceRef) -> None:
        self._graph = AgeGraph(database, ref)

    async def prepare(self) -> None:
        await self._graph.open()

    async def pages(self, kind: Kind) -> AsyncIterator[Sequence[tuple[Key, Properties]]]:
        after = "0"
        while True:
            rows = await self._graph.sql(_PAGES[kind], after, PAGE)
            if rows:
                yield [_row(row, kind) for row in rows]
            if len(rows) < PAGE:
                return
            after = rows[-1]["place"]

    async def read(self, kind: Kind, keys: Sequence[Key]) -> Mapping[Key, Properties]:
        return dict(_row(row, kind) for row in await self._graph.sql(_READ[kind], *columns(keys)))

    async def write(self, kind: Kind, rows: Mapping[Key, Properties]) -> None:
        texts = [json.dumps(properties, ensure_ascii=False) for properties in rows.values()]
        keys = list(rows)
        if kind == "nodes":
            await self._graph.sql(_WRITE_NODES, *columns(keys), texts)
        else:
            # A copy that is broken off between the two writes these relations again.
            await self.delete("edges", keys)
            await self._graph.sql(_WRITE_EDGES, *columns(keys), texts)

    async def delete(self, kind: Kind, keys: Sequence[Key]) -> None:
        await self._graph.sql(_DELETE_NODES if kind == "nodes" else _DELETE_EDGES, *columns(keys))

    async def clear(self) -> None:
        await self._graph.drop()


def _row(row: Mapping[str, Any], kind: Kind) -> tuple[Key, Properties]:
    properties = json.loads(row["properties"])
    if kind == "nodes":
        return (properties["entity_id"],), properties
    return canonical(*(json.loads(row[end])["entity_id"] for end in ("source", "target"))), properties
