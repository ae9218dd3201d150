"""What a unit has done to the graph: nodes, edges and whose neighbourhood is known, over what is in Postgres.

Edges have no direction and are kept under the pair (smaller, larger) in code point order, as LightRAG stores them.
"""

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.retrieval.contract import Statement
from app.retrieval.lightrag.storage.sql import split, value_bytes
from app.retrieval.lightrag.storage.weight import UnitWeight

Properties = dict[str, Any]
Pair = tuple[str, str]

_UPSERT_NODES = """
INSERT INTO lightrag_graph_nodes (workspace, namespace, id, properties, updated_at)
SELECT $1, $2, u.id, u.props::jsonb, now() FROM unnest($3::text[], $4::text[]) AS u(id, props)
ON CONFLICT (workspace, namespace, id)
DO UPDATE SET properties = lightrag_graph_nodes.properties || EXCLUDED.properties, updated_at = now()"""

_ADD_ENDPOINTS = """
INSERT INTO lightrag_graph_nodes (workspace, namespace, id, properties, updated_at)
SELECT $1, $2, u.id, jsonb_build_object('entity_id', u.id), now() FROM unnest($3::text[]) AS u(id)
ON CONFLICT (workspace, namespace, id) DO NOTHING"""

_UPSERT_EDGES = """
INSERT INTO lightrag_graph_edges (workspace, namespace, src_id, tgt_id, properties, updated_at)
SELECT $1, $2, u.src, u.tgt, u.props::jsonb, now()
FROM unnest($3::text[], $4::text[], $5::text[]) AS u(src, tgt, props)
ON CONFLICT (workspace, namespace, src_id, tgt_id) DO UPDATE SET properties = EXCLUDED.properties, updated_at = now()"""

_DELETE_NODES = "DELETE FROM lightrag_graph_nodes WHERE workspace = $1 AND namespace = $2 AND id = ANY($3)"

_DELETE_EDGES = """
DELETE FROM lightrag_graph_edges WHERE workspace = $1 AND namespace = $2
AND (src_id, tgt_id) IN (SELECT * FROM unnest($3::text[], $4::text[]))"""


def pair_of(one: str, other: str) -> Pair:
    return (one, other) if one <= other else (other, one)


@dataclass(frozen=True)
class GraphReader:
    """LightRAG's own batch reads: nodes by name, edges by pair, and the pairs of each node."""

    nodes: Callable[[list[str]], Awaitable[Mapping[str, Properties]]]
    edges: Callable[[list[Pair]], Awaitable[Mapping[Pair, Properties]]]
    neighbourhoods: Callable[[list[str]], Awaitable[Mapping[str, set[Pair]]]]


class GraphOverlay:
    """Nodes merge their properties, edges replace them and make bare endpoints, removed nodes take their edges along."""

    def __init__(self, reader: GraphReader, weight: UnitWeight) -> None:
        self._weight = weight
        self._nodes = weight.loader(reader.nodes)
        self._edges = weight.loader(reader.edges)
        self._around = weight.loader(reader.neighbourhoods)
        self._node_changes: dict[str, Properties] = {}
        self._removed_nodes: set[str] = set()
        self._bare_nodes: set[str] = set()
        self._new_edges: dict[Pair, Properties] = {}
        self._new_around: defaultdict[str, set[Pair]] = defaultdict(set)
        self._removed_edges: set[Pair] = set()

    async def load_nodes(self, names: Iterable[str]) -> None:
        await self._nodes.load(names)

    async def load_edges(self, pairs: Iterable[Pair]) -> None:
        await self._edges.load(pairs)

    async def node(self, name: str) -> Properties | None:
        """The node's properties, a copy."""
        change = self._node_changes.get(name)
        before = None if name in self._removed_nodes else await self._nodes.get(name)
        if change is None and before is None:
            return {"entity_id": name} if name in self._bare_nodes else None
        return {**(before or {}), **(change or {}), "entity_id": name}

    async def edge(self, one: str, other: str) -> Properties | None:
        """The edge's properties, a copy."""
        pair = pair_of(one, other)
        if pair in self._new_edges:
            return dict(self._new_edges[pair])
        if pair in self._removed_edges or self._is_known_absent(pair):
            return None
        before = await self._edges.get(pair)
        return None if before is None else dict(before)

    async def pairs_of(self, name: str) -> set[Pair]:
        """The pairs of all edges at a node."""
        before = await self._around.get(name) or set()
        return (before - self._removed_edges) | self._new_around[name]

    async def load_neighbourhoods(self, names: Iterable[str]) -> None:
        await self._around.load(names)

    def put_node(self, name: str, properties: Mapping[str, Any]) -> None:
        """Raises ValueError without an `entity_id`, as LightRAG's store does."""
        if "entity_id" not in properties:
            raise ValueError("node properties must contain an 'entity_id' field")
        self._weight.add(0 if name in self._node_changes else 1, value_bytes(properties))
        self._node_changes[name] = {**self._node_changes.get(name, {}), **properties, "entity_id": name}

    def put_edge(self, one: str, other: str, properties: Mapping[str, Any]) -> None:
        pair = pair_of(one, other)
        self._weight.add(0 if pair in self._new_edges else 1, value_bytes(properties))
        self._new_edges[pair] = dict(properties)
        for end in pair:
            self._new_around[end].add(pair)
            self._bare_nodes.add(end)

    async def remove_nodes(self, names: Iterable[str]) -> None:
        """Remove nodes with all their edges."""
        gone = list(names)
        await self._around.load(gone)
        for name in gone:
            self.remove_edges(await self.pairs_of(name))
            self._node_changes.pop(name, None)
            self._bare_nodes.discard(name)
            self._removed_nodes.add(name)

    def remove_edges(self, pairs: Iterable[Pair]) -> None:
        for pair in pairs:
            self._removed_edges.add(pair)
            if self._new_edges.pop(pair, None) is not None:
                for end in pair:
                    self._new_around[end].discard(pair)

    def deletes(self, workspace: str, namespace: str) -> Iterator[Statement]:
        """Edges before nodes, so that no foreign key has to look for them."""
        for edges in split(sorted(self._removed_edges), _pair_bytes):
            arrays = [pair[0] for pair in edges], [pair[1] for pair in edges]
            yield Statement(_DELETE_EDGES, (workspace, namespace, *arrays))
        for names in split(sorted(self._removed_nodes), len):
            yield Statement(_DELETE_NODES, (workspace, namespace, list(names)))

    def upserts(self, workspace: str, namespace: str) -> Iterator[Statement]:
        """Nodes before the edges that refer to them."""
        nodes = [(name, json.dumps(self._node_changes[name])) for name in sorted(self._node_changes)]
        for part in split(nodes, lambda node: len(node[0]) + len(node[1])):
            arrays = [name for name, _ in part], [properties for _, properties in part]
            yield Statement(_UPSERT_NODES, (workspace, namespace, *arrays))
        for names in split(sorted(self._missing_endpoints()), len):
            yield Statement(_ADD_ENDPOINTS, (workspace, namespace, list(names)))
        edges = [(*pair, json.dumps(self._new_edges[pair])) for pair in sorted(self._new_edges)]
        for rows in split(edges, lambda edge: len(edge[0]) + len(edge[1]) + len(edge[2])):
            yield Statement(
                _UPSERT_EDGES, (workspace, namespace, *(list(column) for column in zip(*rows, strict=True)))
            )

    def _missing_endpoints(self) -> set[str]:
        """Ends of edges that this unit does not write and has not seen in the database either."""
        return {
            name
            for name in self._bare_nodes - self._node_changes.keys()
            if name in self._removed_nodes or self._nodes.known.get(name) is None
        }

    def _is_known_absent(self, pair: Pair) -> bool:
        # Where the whole neighbourhood of one end is known, an edge that is not in it does not exist.
        return any(pair not in (self._around.known.get(end, {pair}) or set()) for end in pair)


def _pair_bytes(pair: Pair) -> int:
    return len(pair[0]) + len(pair[1])
