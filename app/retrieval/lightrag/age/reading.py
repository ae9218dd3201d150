"""What our statements read of a graph, asked of Apache AGE: entities, relations, what hangs on a name or a version.

Every query goes one way along relations and starts at given names: those are the forms that AGE finds by its indexes.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from app.retrieval.lightrag.age.cypher import BATCH, AgeGraph

Row = dict[str, Any]
Pair = tuple[str, str]
T = TypeVar("T")

_NODES = "UNWIND $names AS name MATCH (n:base {entity_id: name}) RETURN name, n.entity_type, n.description, n.source_id"
_NODE_COLUMNS = ("entity_name", "entity_type", "description", "source_id")

_OUTWARD = (
    "UNWIND $names AS name MATCH (n:base {entity_id: name})-[r:DIRECTED]->(m:base) RETURN name, m.entity_id, r.weight"
)
_INWARD = (
    "UNWIND $names AS name MATCH (n:base {entity_id: name})<-[r:DIRECTED]-(m:base) RETURN name, m.entity_id, r.weight"
)
_AROUND_COLUMNS = ("name", "other", "weight")

_EDGES = """
UNWIND $pairs AS pair MATCH (a:base {entity_id: pair[0]})-[r:DIRECTED]->(b:base {entity_id: pair[1]})
RETURN pair[0], pair[1], r.weight, r.description, r.keywords, r.source_id"""
_EDGE_COLUMNS = ("src_id", "tgt_id", "weight", "description", "keywords", "source_id")

_NODES_NAMING = """
MATCH (n:base) WHERE n.source_id CONTAINS $version OR n.file_path CONTAINS $version RETURN n.entity_id, n.source_id"""
_EDGES_NAMING = """
MATCH (a:base)-[r:DIRECTED]->(b:base) WHERE r.source_id CONTAINS $version OR r.file_path CONTAINS $version
RETURN a.entity_id, b.entity_id, r.source_id"""

# Counting what hangs on a name needs no relation's properties: the tables' indexes have it.
_DEGREES = """
SELECT name, (SELECT count(*) FROM {graph}."DIRECTED" e WHERE e.start_id = a.id)
           + (SELECT count(*) FROM {graph}."DIRECTED" e WHERE e.end_id = a.id) AS degree
  FROM unnest($1::text[]) name
  JOIN {graph}.base a ON {name_of_a} = to_json(name)::text::agtype"""


async def nodes(graph: AgeGraph, names: Sequence[str]) -> dict[str, Row]:
    """Entities by name: entity_name, entity_type, description, source_id."""
    found: dict[str, Row] = {}
    for part in _parts(names):
        for row in await graph.texts(_NODES, _NODE_COLUMNS, names=part):
            found[row["entity_name"]] = row | {
                "entity_type": row["entity_type"] or "UNKNOWN",
                "description": row["description"] or "",
                "source_id": row["source_id"] or "",
            }
    return found


async def edges(graph: AgeGraph, pairs: Iterable[Pair]) -> dict[Pair, Row]:
    """Relations by their ends in code point order: src_id, tgt_id, weight, description, keywords, source_id."""
    wanted = sorted({canonical(*pair) for pair in pairs})
    found: dict[Pair, Row] = {}
    for part in _parts(wanted):
        both_ways = [[*pair] for pair in part] + [[target, source] for source, target in part]
        for row in await graph.texts(_EDGES, _EDGE_COLUMNS, pairs=both_ways):
            source, target = canonical(row["src_id"], row["tgt_id"])
            found[source, target] = {
                "src_id": source,
                "tgt_id": target,
                "weight": _weight(row["weight"]),
                "description": row["description"] or "",
                "keywords": row["keywords"] or "",
                "source_id": row["source_id"] or "",
            }
    return found


async def around(graph: AgeGraph, names: Sequence[str], *, limit: int | None = None) -> dict[Pair, float]:
    """The relations of these entities, by their ends in code point order, with their weights; any `limit` of them."""
    found: dict[Pair, float] = {}
    for part in _parts(names):
        for query in (_OUTWARD, _INWARD):
            left = None if limit is None else limit - len(found)
            if left is not None and left <= 0:
                return found
            bounded = query if left is None else f"{query} LIMIT {left}"
            for row in await graph.texts(bounded, _AROUND_COLUMNS, names=part):
                found[canonical(row["name"], row["other"])] = _weight(row["weight"])
    return found


async def degrees(graph: AgeGraph, names: Sequence[str]) -> dict[str, int]:
    """How many relations each entity has."""
    found: dict[str, int] = {}
    for part in _parts(names):
        found |= {row["name"]: row["degree"] for row in await graph.sql(_DEGREES, list(part))}
    return found


async def nodes_naming(graph: AgeGraph, version: str) -> list[tuple[str, str]]:
    """Entities that name a version, each with the chunks it stands on as LightRAG joins them."""
    rows = await graph.texts(_NODES_NAMING, ("name", "source_id"), version=version)
    return [(row["name"], row["source_id"] or "") for row in rows]


async def edges_naming(graph: AgeGraph, version: str) -> list[tuple[Pair, str]]:
    """The same of relations, by their ends in code point order."""
    rows = await graph.texts(_EDGES_NAMING, ("source", "target", "source_id"), version=version)
    return [(canonical(row["source"], row["target"]), row["source_id"] or "") for row in rows]


def canonical(one: str, other: str) -> Pair:
    return (one, other) if one <= other else (other, one)


def _weight(text: str | None) -> float:
    return 1.0 if text is None else float(text)


def _parts(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))
