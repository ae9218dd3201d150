"""Neighbourhoods and shortest paths in a workspace's graph, by statements on the two plain tables.

Relations are walked both ways. Where several paths are shortest the one whose names come first, read from its end, is told.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.graph_store import NAMESPACE
from app.retrieval.lightrag.reads import Reads

# Relations between entities of these names and others, the other end and what the relation says.
_AROUND = f"""
SELECT e.tgt_id AS other, n.id AS name FROM unnest($2::text[]) n (id)
  JOIN lightrag_graph_edges e ON e.workspace = $1 AND e.namespace = '{NAMESPACE}' AND e.src_id = n.id
UNION ALL
SELECT e.src_id, n.id FROM unnest($2::text[]) n (id)
  JOIN lightrag_graph_edges e ON e.workspace = $1 AND e.namespace = '{NAMESPACE}' AND e.tgt_id = n.id
"""  # noqa: S608 - put together from constants

_REACHED = f"""
WITH RECURSIVE reached (id, distance) AS (
  SELECT id, 0 FROM lightrag_graph_nodes WHERE workspace = $1 AND namespace = '{NAMESPACE}' AND id = $2
  UNION
  SELECT CASE WHEN e.src_id = r.id THEN e.tgt_id ELSE e.src_id END, r.distance + 1
    FROM reached r JOIN lightrag_graph_edges e
      ON e.workspace = $1 AND e.namespace = '{NAMESPACE}' AND (e.src_id = r.id OR e.tgt_id = r.id)
   WHERE r.distance < $3
)
SELECT r.id AS name, n.properties->>'entity_type' AS type, min(r.distance) AS distance
  FROM reached r JOIN lightrag_graph_nodes n ON n.workspace = $1 AND n.namespace = '{NAMESPACE}' AND n.id = r.id
 GROUP BY 1, 2 ORDER BY 3, r.id COLLATE "C" LIMIT $4
"""  # noqa: S608 - put together from constants

_STEPS = f"""
SELECT e.src_id, e.tgt_id, COALESCE((e.properties->>'weight')::float8, 1) AS weight, e.properties->>'description' AS description
  FROM unnest($2::text[], $3::text[]) w (src, tgt)
  JOIN lightrag_graph_edges e ON e.workspace = $1 AND e.namespace = '{NAMESPACE}' AND e.src_id = w.src AND e.tgt_id = w.tgt
"""  # noqa: S608 - put together from constants


@dataclass(frozen=True)
class Neighbour:
    """An entity, and how many relations lie between it and where the walk began."""

    name: str
    type: str
    distance: int


@dataclass(frozen=True)
class Step:
    """One relation of a path, in the direction in which the path goes."""

    source: str
    target: str
    weight: float
    description: str


class Walks(Protocol):
    """Runs inside the workspace's fence."""

    async def neighbourhood(self, name: str, *, depth: int, limit: int) -> Sequence[Neighbour]:
        """The entity itself and those within `depth` relations, nearest first, then in code point order."""
        ...

    async def path(self, source: str, target: str, *, longest: int) -> Sequence[Step] | None:
        """A shortest path of at most `longest` relations; None if there is none, empty from an entity to itself."""
        ...


class TableWalks:
    """`Walks` on the tables."""

    def __init__(self, database: Reads, ref: WorkspaceRef) -> None:
        self._database = database
        self._workspace = ref.engine_name

    async def neighbourhood(self, name: str, *, depth: int, limit: int) -> Sequence[Neighbour]:
        rows = await self._database.fetch(_REACHED, self._workspace, name, depth, limit)
        return [Neighbour(row["name"], row["type"] or "UNKNOWN", row["distance"]) for row in rows]

    async def path(self, source: str, target: str, *, longest: int) -> Sequence[Step] | None:
        names = await walk(self._around, source, target, longest)
        if names is None or len(names) < 2:
            return None if names is None or not await self.neighbourhood(source, depth=0, limit=1) else []
        pairs = [(min(pair), max(pair)) for pair in itertools.pairwise(names)]
        rows = await self._database.fetch(_STEPS, self._workspace, *map(list, zip(*pairs, strict=True)))
        found = {(row["src_id"], row["tgt_id"]): row for row in rows}
        return [
            Step(one, other, found[pair]["weight"], found[pair]["description"] or "")
            for (one, other), pair in zip(itertools.pairwise(names), pairs, strict=True)
        ]

    async def _around(self, names: Sequence[str]) -> "set[tuple[str, str]]":
        rows = await self._database.fetch(_AROUND, self._workspace, list(names))
        return {(row["name"], row["other"]) for row in rows}


class Around(Protocol):
    async def __call__(self, names: Sequence[str]) -> "set[tuple[str, str]]":
        """(given name, name at the other end) of every relation of these entities."""
        ...


async def walk(around: Around, source: str, target: str, longest: int) -> list[str] | None:
    """The names of a shortest path, found breadth first from `source`; a step asks for a whole ring at once."""
    if source == target:
        return [source]
    comes_from: dict[str, str] = {source: source}
    ring = [source]
    for _ in range(longest):
        found: dict[str, str] = {}
        for name, other in sorted(await around(ring)):
            if other not in comes_from:
                found.setdefault(other, name)
        comes_from |= found
        if target in found:
            break
        ring = list(found)
        if not ring:
            return None
    if target not in comes_from:
        return None
    path = [target]
    while path[-1] != source:
        path.append(comes_from[path[-1]])
    return path[::-1]
