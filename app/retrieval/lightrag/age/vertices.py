"""Whole entities of a graph in Apache AGE, as walks show them; their values are read by apache-age-python."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from app.retrieval.lightrag.age.cypher import BATCH, AgeGraph

_VERTICES = "UNWIND $names AS name MATCH (n:base {entity_id: name}) RETURN n"


async def vertices(graph: AgeGraph, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Properties of the entities that are there, by name."""
    found: dict[str, Mapping[str, Any]] = {}
    for start in range(0, len(names), BATCH):
        rows = await graph.values(_VERTICES, ("n",), names=names[start : start + BATCH])
        # Reading takes about 2 ms a vertex.
        read = await asyncio.to_thread(
            lambda texts: [_reader()(text).properties for text in texts], [row["n"] for row in rows]
        )
        found |= {properties["entity_id"]: properties for properties in read}
    return found


@cache
def _reader() -> Any:
    # Only here, so that all else works without the extra `age`.
    return import_module("app.retrieval.lightrag.age.agtype").read
