"""Neighbours, paths, mentions and exports: looking around in the graph, within limits."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from app.retrieval.contract import EngineWorkspace, EntityEvidence, RelationEvidence, WorkspaceRef
from app.retrieval.entity_graph_contract import EntityMention, Paths, Surroundings
from app.retrieval.lightrag.entities.browsing import EntityBrowsing, relation_evidence
from app.retrieval.lightrag.evidence import graph_evidence
from app.retrieval.lightrag.graph_reads_store import GraphReads
from app.retrieval.lightrag.graphs import graph_reads, graph_rows
from app.retrieval.lightrag.long_name_store import shown_whole
from app.retrieval.lightrag.pool import inside
from app.retrieval.lightrag.rows_store import Key, Kind, Properties, Rows
from app.retrieval.lightrag.support_store import SupportStore, relation_key

# Of each entity at most: hubs would fill the answer by themselves.
RELATIONS_A_NEIGHBOUR = 200
# What one request may read of the graph: a search for paths, or each step of a walk around an entity.
MAX_RELATIONS_READ = 20_000


class EntityWalking(EntityBrowsing):
    @shown_whole
    async def mentions(
        self, workspace: EngineWorkspace, name: str, *, after: int, limit: int
    ) -> Sequence[EntityMention]:
        """`EntityGraph.mentions`."""
        with inside(workspace.ref):
            known = await self._require(workspace, name)
            return [
                EntityMention(**row) for row in await self._reads(workspace).mentions(known, after=after, limit=limit)
            ]

    @shown_whole
    async def neighbours(self, workspace: EngineWorkspace, name: str, *, depth: int, limit: int) -> Surroundings:
        """`EntityGraph.neighbours`."""
        with inside(workspace.ref):
            start = await self._require(workspace, name)
            reads, support = self._reads(workspace), self._support(workspace)
            distance, relations = {start: 0}, dict[tuple[str, str], RelationEvidence]()
            border, is_cut = [start], False
            for step in range(1, depth + 1):
                rows = await reads.around(border, limit=RELATIONS_A_NEIGHBOUR, total=MAX_RELATIONS_READ)
                is_cut = is_cut or len(rows) >= MAX_RELATIONS_READ
                ordered = sorted(rows, key=lambda row: (row["src_id"], row["tgt_id"]))
                found = await relation_evidence(support, ordered)
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

    @shown_whole
    async def paths(self, workspace: EngineWorkspace, source: str, target: str, *, longest: int, limit: int) -> Paths:
        """`EntityGraph.paths`: breadth first from both ends, always from the one with less at its border."""
        with inside(workspace.ref):
            start, end = await self._require(workspace, source), await self._require(workspace, target)
            if start == end:
                return Paths(((start,),))
            reads, support = self._reads(workspace), self._support(workspace)
            one, other, left = _Side(start), _Side(end), MAX_RELATIONS_READ
            meeting: list[str] = []
            for _ in range(longest):
                side, facing = (one, other) if len(one.border) <= len(other.border) else (other, one)
                pairs = await reads.pairs_around(side.border, total=left)
                left -= len(pairs)
                trusted = (await support.support((), [relation_key(*pair) for pair in pairs])).relations
                side.step(pair for pair in pairs if relation_key(*pair) in trusted)
                # Full rings from both ends: where they meet first the ways are shortest.
                meeting = [name for name in side.border if name in facing.before]
                if meeting or not side.border or left <= 0:
                    break
        ways = (
            (*reversed(back), *onward[1:])
            for name in meeting
            for back in _ways(one.before, name)
            for onward in _ways(other.before, name)
        )
        return Paths(tuple(islice(ways, limit)), is_cut=left <= 0)

    async def export(self, workspace: EngineWorkspace) -> AsyncIterator[EntityEvidence | RelationEvidence]:
        """`EntityGraph.export`."""
        ref, support = workspace.ref, self._support(workspace)
        rows, long = graph_rows(self._database, ref), self._long(workspace)
        shown: set[str] = set()
        async for page in _pages(ref, rows, "nodes"):
            with inside(ref):
                entities = (await graph_evidence(support, [_node(key[0], found) for key, found in page], ()))[0]
            shown |= {entity.name for entity in entities}
            for entity in await long.shown(entities):
                yield entity
        async for page in _pages(ref, rows, "edges"):
            edges = [{"src_id": key[0], "tgt_id": key[1], "properties": json.dumps(dict(found))} for key, found in page]
            with inside(ref):
                relations = await relation_evidence(support, edges)
            for relation in await long.shown([each for each in relations if {each.source, each.target} <= shown]):
                yield relation

    def _reads(self, workspace: EngineWorkspace) -> GraphReads:
        return graph_reads(self._database, workspace.ref, self._support(workspace).states)

    async def _shown(
        self, support: SupportStore, reads: GraphReads, distance: Mapping[str, int]
    ) -> list[tuple[EntityEvidence, int]]:
        rows = sorted(await reads.nodes(distance), key=lambda row: str(row["entity_name"]))
        entities = (await graph_evidence(support, rows, ()))[0]
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


class _Side:
    """What was reached from one end: `before` has the names from which each name was reached; `border` the last ring."""

    def __init__(self, end: str) -> None:
        self.before: dict[str, dict[str, None]] = {end: {}}
        self.border = [end]

    def step(self, relations: Iterable[tuple[str, str]]) -> None:
        reached: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for pair in relations:
            for here, there in (pair, pair[::-1]):
                if here in self.before and there not in self.before:
                    reached[there][here] = None
        self.before |= reached
        self.border = sorted(reached)


def _ways(before: Mapping[str, Mapping[str, None]], name: str) -> Iterator[tuple[str, ...]]:
    """From `name` to the end that everything was reached from, in the order of the names on the way."""
    stack: list[tuple[str, ...]] = [(name,)]
    while stack:
        way = stack.pop()
        if not before[way[-1]]:
            yield way
        stack += [(*way, each) for each in sorted(before[way[-1]], reverse=True)]
