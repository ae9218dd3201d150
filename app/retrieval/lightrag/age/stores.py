"""Our readers of a workspace's graph, where it is in Apache AGE: the graph is asked, everything else is in the tables as always.

The graph's role sees nothing but the graph, so what one statement joins in the tables is two here.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from app.providers.contract import Vectors
from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.age import reading
from app.retrieval.lightrag.age.cypher import AgeGraph
from app.retrieval.lightrag.age.reading import Pair, canonical
from app.retrieval.lightrag.age.vertices import vertices
from app.retrieval.lightrag.graph_reads_store import GraphReads
from app.retrieval.lightrag.graph_store import MANUAL, SEPARATOR, GraphStore, Remaining
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.reads import Reads
from app.retrieval.lightrag.search_store import (
    NEAREST_NAMES,
    NEAREST_PAIRS,
    NEAREST_SPOKEN_NAMES,
    NEAREST_SPOKEN_PAIRS,
    SPOKEN_PAIRS,
    GraphReader,
    Row,
)
from app.retrieval.lightrag.support_store import MAX_RELATIONS, TRUSTED, SupportStore

NODES, EDGES = "age_nodes", "age_edges"

_SPOKEN_PAIRS = SPOKEN_PAIRS.format(tenant="$1", versions="$2")

_NAMES = f"""
SELECT t.id AS name FROM lightrag_entity_chunks t
 WHERE t.workspace = $1
   AND ($5::text IS NULL OR starts_with(lower(t.id), lower($5))) AND ($6::text IS NULL OR t.id COLLATE "C" > $6)
   AND EXISTS (SELECT 1 FROM jsonb_array_elements_text(t.chunk_ids) c
                 LEFT JOIN ({TRUSTED.format(states="$3", tenant="$2")}) live ON live.version_id::text = substr(c, 1, 36)
                WHERE live.version_id IS NOT NULL OR c = '{MANUAL}')
 ORDER BY t.id COLLATE "C" LIMIT $4
"""  # noqa: S608 - put together from constants


class AgeReader(GraphReader):
    """What a search reads."""

    def __init__(
        self, database: Reads, ref: WorkspaceRef, suffix: str, *, allowed: Collection[UUID] | None = None
    ) -> None:
        super().__init__(database, ref, suffix, allowed=allowed)
        self._graph = AgeGraph(database, ref)

    async def nearest_entities(self, vector: Vectors, limit: int) -> list[Row]:
        near = await self._nearest(NEAREST_SPOKEN_NAMES if self.is_narrowed else NEAREST_NAMES, vector, limit)
        scores = {row["entity_name"]: 1 - row["distance"] for row in near}
        return [row | {"score": scores[row["entity_name"]]} for row in await self.entities(list(scores))]

    async def nearest_relations(self, vector: Vectors, limit: int) -> list[Row]:
        near = await self._nearest(NEAREST_SPOKEN_PAIRS if self.is_narrowed else NEAREST_PAIRS, vector, limit)
        pairs = {(row["source_id"], row["target_id"]): 1 - row["distance"] for row in near}
        found = await reading.edges(self._graph, pairs)
        # The ends as the vector's row has them: entities are found in their order.
        known = [(pair, found[canonical(*pair)]) for pair in pairs if canonical(*pair) in found]
        return [row | {"src_id": pair[0], "tgt_id": pair[1], "score": pairs[pair]} for pair, row in known]

    async def entities(self, names: Sequence[str]) -> list[Row]:
        found = await reading.nodes(self._graph, names) if names else {}
        return [found[name] for name in names if name in found]

    async def relations_of(self, names: Sequence[str], limit: int) -> list[Row]:
        if not names:
            return []
        touching = await reading.around(self._graph, names)
        if self._allowed is not None:
            spoken = {tuple(row) for row in await self._database.fetch(_SPOKEN_PAIRS, *self._allowed)}
            touching = {pair: weight for pair, weight in touching.items() if pair in spoken}
        degrees = await reading.degrees(self._graph, sorted({end for pair in touching for end in pair}))
        places = {name: place for place, name in reversed(list(enumerate(names)))}

        def rank(pair: Pair) -> tuple[float, float, int, str]:
            """As the tables' statement: degrees, weight, the first given end's place, the name at the other end."""
            source, target = pair
            at = [places.get(end, len(names)) for end in pair]
            other = target if at[0] < at[1] or at[1] == len(names) else source
            return -(degrees.get(source, 0) + degrees.get(target, 0)), -touching[pair], min(at), other

        best = sorted(touching, key=rank)[:limit]
        found = await reading.edges(self._graph, best)
        return [found[pair] for pair in best if pair in found]


class AgeSupportStore(SupportStore):
    """What is read about entities and relations to tell who stands behind them."""

    def __init__(
        self,
        database: Reads,
        ref: WorkspaceRef,
        *,
        include_partial: bool = False,
        allowed: Collection[UUID] | None = None,
    ) -> None:
        super().__init__(database, ref, include_partial=include_partial, allowed=allowed)
        self._graph = AgeGraph(database, ref)

    async def entities(self, *, prefix: str | None, after: str | None, limit: int) -> Sequence[Any]:
        rows = await self._database.fetch(
            _NAMES, self._ref.engine_name, self._ref.tenant_id, self.states, limit, prefix, after
        )
        names = [row["name"] for row in rows]
        found = await reading.nodes(self._graph, names)
        degrees = await reading.degrees(self._graph, names)
        return [
            {
                "name": name,
                "type": found[name]["entity_type"],
                "description": found[name]["description"],
                "degree": degrees.get(name, 0),
            }
            for name in names
            if name in found
        ]

    async def existing(self, names: Sequence[str]) -> set[str]:
        return set(await reading.nodes(self._graph, list(dict.fromkeys(names))))

    async def relations_of(self, name: str) -> Sequence[Any]:
        weights = await reading.around(self._graph, [name])
        best = sorted(weights, key=lambda pair: (-weights[pair], *pair))[:MAX_RELATIONS]
        found = await reading.edges(self._graph, best)
        return [
            {"src_id": pair[0], "tgt_id": pair[1], "properties": json.dumps(found[pair])}
            for pair in best
            if pair in found
        ]

    async def relation(self, one: str, other: str) -> Sequence[Any]:
        pair = min(one, other), max(one, other)
        found = await reading.edges(self._graph, [pair])
        return [{"src_id": pair[0], "tgt_id": pair[1], "properties": json.dumps(found[pair])}] if pair in found else []

    async def count_relations(self, names: Sequence[str]) -> int:
        return len(await reading.around(self._graph, names)) if names else 0


class AgeGraphReads(GraphReads):
    """What is read around in the graph."""

    def __init__(self, reads: Reads, ref: WorkspaceRef, states: Collection[str]) -> None:
        super().__init__(reads, ref, states)
        self._graph = AgeGraph(reads, ref)

    async def around(self, names: Iterable[str], *, limit: int, total: int) -> Sequence[Any]:
        border = list(names)
        weights = await reading.around(self._graph, border)
        best = sorted(weights, key=lambda pair: (-weights[pair], *pair))[: min(limit * len(border), total)]
        found = await reading.edges(self._graph, best)
        return [
            {"src_id": pair[0], "tgt_id": pair[1], "properties": json.dumps(found[pair])}
            for pair in best
            if pair in found
        ]

    async def pairs_around(self, names: Iterable[str], *, total: int) -> list[Pair]:
        return list(await reading.around(self._graph, list(names), limit=total))

    async def nodes(self, names: Iterable[str]) -> Sequence[Any]:
        found = await vertices(self._graph, list(names))
        return [
            {
                "entity_name": name,
                "entity_type": node.get("entity_type") or "UNKNOWN",
                "description": node.get("description") or "",
            }
            for name, node in found.items()
        ]

    async def neighbours_of(self, names: Iterable[str]) -> dict[str, set[str]]:
        wanted = set(names)
        found: dict[str, set[str]] = {}
        for one, other in await reading.around(self._graph, sorted(wanted)):
            for here, there in ((one, other), (other, one)):
                if here in wanted:
                    found.setdefault(here, set()).add(there)
        return found


class AgeGraphStore(GraphStore):
    """What is read and removed of a version, or of the whole workspace."""

    def __init__(self, database: EngineDatabase, ref: WorkspaceRef, suffix: str) -> None:
        super().__init__(database, ref.engine_name, suffix)
        self._graph = AgeGraph(database, ref)

    async def open(self) -> None:
        await self._graph.open()

    async def empty(self) -> None:
        await self._graph.values("MATCH (n) DETACH DELETE n", ("n",))

    async def traces(self, version_id: str) -> dict[str, int]:
        found = await super().traces(version_id)
        nodes = await reading.nodes_naming(self._graph, version_id)
        edges = await reading.edges_naming(self._graph, version_id)
        return found | {place: len(rows) for place, rows in ((NODES, nodes), (EDGES, edges)) if rows}

    async def _graph_naming(self, version_id: str) -> tuple[Remaining, Remaining]:
        nodes = await reading.nodes_naming(self._graph, version_id)
        edges = await reading.edges_naming(self._graph, version_id)
        return (
            [(name, _remaining(chunks, version_id)) for name, chunks in nodes],
            [(SEPARATOR.join(pair), _remaining(chunks, version_id)) for pair, chunks in edges],
        )


def _remaining(source_id: str, version_id: str) -> list[str]:
    return [chunk for chunk in source_id.split(SEPARATOR) if not chunk.startswith(f"{version_id}-chunk-")]
