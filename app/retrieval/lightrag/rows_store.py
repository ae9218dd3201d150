"""Whole rows of a workspace's graph, as moves read and write them, and those of the two plain tables."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.graph_store import NAMESPACE
from app.retrieval.lightrag.pool import EngineDatabase

Kind = Literal["nodes", "edges"]
KINDS: tuple[Kind, ...] = ("nodes", "edges")
# An entity's name, or a relation's two in code point order.
Key = tuple[str, ...]
Properties = Mapping[str, Any]
PAGE = 2_000

_PAGES: Mapping[Kind, str] = {
    "nodes": """
SELECT ARRAY[id] AS key, properties::text AS properties FROM lightrag_graph_nodes
 WHERE workspace = $1 AND namespace = $2 AND id > $3 AND $4 = '' ORDER BY id LIMIT $5""",
    "edges": """
SELECT ARRAY[src_id, tgt_id] AS key, properties::text AS properties FROM lightrag_graph_edges
 WHERE workspace = $1 AND namespace = $2 AND (src_id, tgt_id) > ($3, $4) ORDER BY src_id, tgt_id LIMIT $5""",
}
_READ: Mapping[Kind, str] = {
    "nodes": """
SELECT ARRAY[id] AS key, properties::text AS properties FROM lightrag_graph_nodes
 WHERE workspace = $1 AND namespace = $2 AND id = ANY ($3)""",
    "edges": """
SELECT ARRAY[e.src_id, e.tgt_id] AS key, e.properties::text AS properties
  FROM unnest($3::text[], $4::text[]) w (src, tgt)
  JOIN lightrag_graph_edges e ON e.workspace = $1 AND e.namespace = $2 AND e.src_id = w.src AND e.tgt_id = w.tgt""",
}
_WRITE: Mapping[Kind, str] = {
    "nodes": """
INSERT INTO lightrag_graph_nodes (workspace, namespace, id, properties)
SELECT $1, $2, w.id, w.properties::jsonb FROM unnest($3::text[], $4::text[]) w (id, properties)
ON CONFLICT (workspace, namespace, id) DO UPDATE SET properties = EXCLUDED.properties, updated_at = now()""",
    "edges": """
INSERT INTO lightrag_graph_edges (workspace, namespace, src_id, tgt_id, properties)
SELECT $1, $2, w.src, w.tgt, w.properties::jsonb FROM unnest($3::text[], $4::text[], $5::text[]) w (src, tgt, properties)
ON CONFLICT (workspace, namespace, src_id, tgt_id)
DO UPDATE SET properties = EXCLUDED.properties, updated_at = now()""",
}
_DELETE: Mapping[Kind, str] = {
    "nodes": "DELETE FROM lightrag_graph_nodes WHERE workspace = $1 AND namespace = $2 AND id = ANY ($3)",
    "edges": """
DELETE FROM lightrag_graph_edges e USING unnest($3::text[], $4::text[]) w (src, tgt)
 WHERE e.workspace = $1 AND e.namespace = $2 AND e.src_id = w.src AND e.tgt_id = w.tgt""",
}
_EMPTY = ("lightrag_graph_edges", "lightrag_graph_nodes")


class Rows(Protocol):
    """The rows of a workspace's graph in one store. Runs inside the workspace's fence; every write is a transaction."""

    async def prepare(self) -> None: ...
    def pages(self, kind: Kind) -> AsyncIterator[Sequence[tuple[Key, Properties]]]: ...
    async def read(self, kind: Kind, keys: Sequence[Key]) -> Mapping[Key, Properties]: ...
    async def write(self, kind: Kind, rows: Mapping[Key, Properties]) -> None: ...
    async def delete(self, kind: Kind, keys: Sequence[Key]) -> None: ...
    async def clear(self) -> None: ...


class TableRows:
    """`Rows` of the two plain tables."""

    def __init__(self, database: EngineDatabase, ref: WorkspaceRef) -> None:
        self._database = database
        self._scope = ref.engine_name, NAMESPACE

    async def prepare(self) -> None:
        """The tables are there."""

    async def pages(self, kind: Kind) -> AsyncIterator[Sequence[tuple[Key, Properties]]]:
        after = ("", "")
        while True:
            rows = await self._database.fetch(_PAGES[kind], *self._scope, *after, PAGE)
            page = [(tuple(row["key"]), json.loads(row["properties"])) for row in rows]
            if page:
                yield page
            if len(page) < PAGE:
                return
            last = page[-1][0]
            after = (last[0], last[1] if kind == "edges" else "")

    async def read(self, kind: Kind, keys: Sequence[Key]) -> Mapping[Key, Properties]:
        rows = await self._database.fetch(_READ[kind], *self._scope, *columns(keys))
        return {tuple(row["key"]): json.loads(row["properties"]) for row in rows}

    async def write(self, kind: Kind, rows: Mapping[Key, Properties]) -> None:
        texts = [json.dumps(properties, ensure_ascii=False) for properties in rows.values()]
        await self._database.fetch(_WRITE[kind], *self._scope, *columns(list(rows)), texts)

    async def delete(self, kind: Kind, keys: Sequence[Key]) -> None:
        await self._database.fetch(_DELETE[kind], *self._scope, *columns(keys))

    async def clear(self) -> None:
        for table in _EMPTY:
            await self._database.fetch(f"DELETE FROM {table} WHERE workspace = $1", self._scope[0])  # noqa: S608


def columns(keys: Sequence[Key]) -> list[list[str]]:
    """The names of keys, by their place in the key."""
    return [list(column) for column in zip(*keys, strict=True)]
