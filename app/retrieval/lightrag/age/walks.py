"""Neighbourhoods and shortest paths by openCypher. A pattern of any length would have AGE read the whole graph first.

So a walk asks for one ring after the other, each from the names of the one before.
"""

import itertools
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.age import reading
from app.retrieval.lightrag.age.cypher import BATCH, AgeGraph
from app.retrieval.lightrag.age.reading import Pair, canonical
from app.retrieval.lightrag.reads import Reads
from app.retrieval.lightrag.walk_store import Neighbour, Step, walk

_VERTICES = "UNWIND $names AS name MATCH (n:base {entity_id: name}) RETURN n"
_RELATIONS = """
UNWIND $pairs AS pair MATCH (a:base {entity_id: pair[0]})-[r:DIRECTED]->(b:base {entity_id: pair[1]}) RETURN a, r, b"""


class AgeWalks:
    """`Walks` in Apache AGE."""

    def __init__(self, database: Reads, ref: WorkspaceRef) -> None:
        self._graph = AgeGraph(database, ref)

    async def neighbourhood(self, name: str, *, depth: int, limit: int) -> Sequence[Neighbour]:
        distances = {name: 0}
        ring = [name]
        for distance in range(1, depth + 1):
            ring = sorted({other for _, other in await self._around(ring)} - distances.keys())
            distances |= dict.fromkeys(ring, distance)
        wanted = sorted(distances, key=lambda found: (distances[found], found))[:limit]
        types = await self._types(wanted)
        return [Neighbour(found, types[found], distances[found]) for found in wanted if found in types]

    async def path(self, source: str, target: str, *, longest: int) -> Sequence[Step] | None:
        names = await walk(self._around, source, target, longest)
        if names is None or len(names) < 2:
            return None if names is None or not await self._types([source]) else []
        ways = list(itertools.pairwise(names))
        found: dict[Pair, Any] = {}
        both_ways = [[*way] for way in ways] + [[target, source] for source, target in ways]
        for row in await self._graph.values(_RELATIONS, ("a", "r", "b"), pairs=both_ways):
            ends = (_read(row[end])["entity_id"] for end in ("a", "b"))
            found[canonical(*ends)] = _read(row["r"])
        return [_step(way, found[canonical(*way)]) for way in ways]

    async def _types(self, names: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for start in range(0, len(names), BATCH):
            for row in await self._graph.values(_VERTICES, ("n",), names=names[start : start + BATCH]):
                vertex = _read(row["n"])
                found[vertex["entity_id"]] = vertex.properties.get("entity_type") or "UNKNOWN"
        return found

    async def _around(self, names: Sequence[str]) -> set[Pair]:
        given = set(names)
        pairs = await reading.around(self._graph, names)
        ways = [way for one, other in pairs for way in ((one, other), (other, one))]
        return {(name, other) for name, other in ways if name in given}


def _step(way: Pair, relation: Any) -> Step:
    properties = relation.properties
    return Step(*way, float(properties.get("weight", 1)), properties.get("description") or "")


@cache
def _reader() -> Any:
    # Only here, so that all else works without the extra `age`.
    return import_module("app.retrieval.lightrag.age.agtype").read


def _read(value: str) -> Any:
    return _reader()(value)
