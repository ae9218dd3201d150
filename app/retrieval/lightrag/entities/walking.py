"""Neighbours, paths, mentions and exports: looking around in the graph, within limits."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from app.retrieval.contract import EngineWorkspace, EntityEvidence, RelationEvidence, WorkspaceRef
from app.retrieval.entity_graph_contract import EntityMention, Surroundings
from app.retrieval.lightrag.entities.browsing import EntityBrowsing, relation_evidence
from app.retrieval.lightrag.evidence import graph_evidence
from app.retrieval.lightrag.graph_reads_store import GraphReads
from app.retrieval.lightrag.graphs import graph_reads, graph_rows
from app.retrieval.lightrag.pool import inside
from app.retrieval.lightrag.rows_store import Key, Kind, Properties, Rows
from app.retrieval.lightrag.support_store import SupportStore

# Of each entity at most: hubs would fill the answer by themselves.
RELATIONS_A_NEIGHBOUR = 200
# A search for paths looks no further than this.
MAX_VISITED = 20_000


class EntityWalking(EntityBrowsing):
    async def mentions(
        self, workspace: EngineWorkspace, name: str, *, after: int, limit: int
    ) -> Sequence[EntityMention]:
        """`EntityGraph.mentions`."""
        with inside(workspace.ref):
            known = await self._require(workspace, name)
            return [
                EntityMention(**row) for row in await self._reads(workspace).mentions(known, after=after, limit=limit)
            ]

    async def neighbours(self, workspace: EngineWorkspace, name: str, *, depth: int, limit: int) -> Surroundings:
        """`EntityGraph.neighbours`."""
        with inside(workspace.ref):
            start = await self._require(workspace, name)
            reads, support = self._reads(workspace), self._support(workspace)
            distance, relations = {start: 0}, dict[tuple[str, str], RelationEvidence]()
            border, is_cut = [start], False
            for step in range(1, depth + 1):
                found = await relation_evidence(support, await reads.around(border, limit=RELATIONS_A_NEIGHBOUR))
                border = []
                for relation in sorted(found, key=lambda each: (-each.weight, each.source, each.target)):
                    new = [end for end in (relation.source, relation.target) if end not in distance]
                    if len(distance) + len(new) > limit + 1:
                        is_cut = True
                        continue
                    relations[relation.source, relation.target] = relation
                    distance |= dict.fromkeys(new, step)
                    border += new
                if not border:
                    break
            entities = await self._shown(support, reads, distance)
        named = {entity.name for entity, _ in entities}
        kept = tuple(found for found in relations.values() if {found.source, found.target} <= named)
        return Surroundings(tuple(entities), kept, is_cut)

    async def paths(
        self, workspace: EngineWorkspace, source: str, target: str, *, longest: int, limit: int
    ) -> Sequence[tuple[str, ...]]:
        """`EntityGraph.paths`."""
        with inside(workspace.ref):
            start, end = await self._require(workspace, source), await self._require(workspace, target)
            if start == end:
                return [(start,)]
            reads, support = self._reads(workspace), self._support(workspace)
            before: dict[str, dict[str, None]] = {start: {}}
            border = [start]
            for _ in range(longest):
                reached: defaultdict[str, dict[str, None]] = defaultdict(dict)
                for one, other in await _trusted_pairs(support, await reads.around(border, limit=MAX_VISITED)):
                    for here, there in ((one, other), (other, one)):
                        if here in before and there not in before:
                            reached[there][here] = None
                before |= reached
                border = sorted(reached)
                if end in before or not border or len(before) > MAX_VISITED:
                    break
        return list(_backwards(before, start, end, limit)) if end in before else []

    async def export(self, workspace: EngineWorkspace) -> AsyncIterator[EntityEvidence | RelationEvidence]:
        """`EntityGraph.export`."""
        ref, support = workspace.ref, self._support(workspace)
        rows = graph_rows(self._database, ref)
        shown: set[str] = set()
        async for page in _pages(ref, rows, "nodes"):
            with inside(ref):
                entities = (await graph_evidence(support, [_node(key[0], found) for key, found in page], ()))[0]
            for entity in entities:
                shown.add(entity.name)
                yield entity
        async for page in _pages(ref, rows, "edges"):
            edges = [{"src_id": key[0], "tgt_id": key[1], "properties": json.dumps(dict(found))} for key, found in page]
            with inside(ref):
                relations = await relation_evidence(support, edges)
            for relation in relations:
                if relation.source in shown and relation.target in shown:
                    yield relation

    def _reads(self, workspace: EngineWorkspace) -> GraphReads:
        return graph_reads(self._database, workspace.ref, self._support(workspace).states)

    async def _shown(
        self, support: SupportStore, reads: GraphReads, distance: Mapping[str, int]
    ) -> list[tuple[EntityEvidence, int]]:
        entities = (await graph_evidence(support, await reads.nodes(distance), ()))[0]
        return sorted(((found, distance[found.name]) for found in entities), key=lambda each: (each[1], each[0].name))


async def _pages(ref: WorkspaceRef, rows: Rows, kind: Kind) -> AsyncIterator[Sequence[tuple[Key, Properties]]]:
    """The fence is entered for each page only: what asks for pages may be another task each time."""
    pages = rows.pages(kind)
    while True:
        with inside(ref):
            page = await anext(pages, None)
        if page is None:
            return
        yield page


def _node(name: str, properties: Properties) -> dict[str, Any]:
    return {
        "entity_name": name,
        "entity_type": properties.get("entity_type") or "",
        "description": properties.get("description") or "",
    }


async def _trusted_pairs(support: SupportStore, rows: Sequence[Any]) -> list[tuple[str, str]]:
    return [(found.source, found.target) for found in await relation_evidence(support, rows)]


def _backwards(before: Mapping[str, Mapping[str, None]], start: str, end: str, limit: int) -> Iterable[tuple[str, ...]]:
    """Up to `limit` ways from `start` to `end`, in the order of their names."""
    stack: list[tuple[str, ...]] = [(end,)]
    found = 0
    while stack and found < limit:
        path = stack.pop()
        if path[0] == start:
            found += 1
            yield path
            continue
        stack += [(name, *path) for name in sorted(before[path[0]], reverse=True)]
