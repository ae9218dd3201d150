"""Finds entities by names that are like a given one, and entities whose names are like each other's.

What was compared is remembered by each process: after a change of the corpus only names that are new are compared.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from app.retrieval.contract import EngineWorkspace
from app.retrieval.entity_graph_contract import DuplicateGroup, DuplicatePair, FoundName
from app.retrieval.lightrag.entities.walking import EntityWalking
from app.retrieval.lightrag.graph_reads_store import GraphReads
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.stores import Writes
from app.text.duplicates.finding import AlikePair, DuplicateFinder, groups_of
from app.text.duplicates.likeness import PROPOSED
from app.text.duplicates.looking import NameLookup

Result = TypeVar("Result")

REMEMBERED_WORKSPACES = 16
# Pairs whose surroundings are compared too, best first.
MAX_PAIRS = 2_000
SHARED_NEIGHBOURS = 0.3
NEAR = 0.9
# How much the graph adds to what the names say; it cannot make one thing of two names that are not alike.
GRAPH_ADDS = 0.04


@dataclass
class _Known:
    """The names of one workspace, as they were at a version of its corpus."""

    finder: DuplicateFinder = field(default_factory=lambda: DuplicateFinder(PROPOSED))
    lookup: NameLookup = field(default_factory=NameLookup)
    version: int | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    # A request that is given up leaves `lock` while its thread goes on.
    guard: threading.Lock = field(default_factory=threading.Lock)

    def read(self, names: Sequence[str] | None, version: int | None, reading: Callable[["_Known"], Result]) -> Result:
        """Bring the names up to date where they are given, and read; one thread at a time."""
        with self.guard:
            if names is not None:
                self.lookup.replace(names)
                self.version = version
            return reading(self)

    def find(self, text: str, limit: int, meant: str | None) -> dict[str, float]:
        """Names with their scores; the one that `text` means by another name has the best."""
        found = dict(self.lookup.find(text, limit))
        return found | ({meant: 1.0} if meant is not None and meant in self.lookup.names else {})

    def best_pairs(self) -> list[AlikePair]:
        if self.finder.names != self.lookup.names:
            self.finder.remove(self.finder.names - self.lookup.names)
            self.finder.add(sorted(self.lookup.names))
        return sorted(self.finder.pairs.values(), key=lambda pair: (-pair.score, pair.one, pair.other))


class EntityFinding(EntityWalking):
    def __init__(self, database: EngineDatabase, instances: InstancePool, writes: Writes) -> None:
        super().__init__(database, instances, writes)
        self._known: OrderedDict[UUID, _Known] = OrderedDict()

    async def search(self, workspace: EngineWorkspace, text: str, *, limit: int) -> Sequence[FoundName]:
        """`EntityGraph.search`."""
        with inside(workspace.ref):
            meant = await self._resolve(workspace, text)
            found = await self._read(workspace, lambda known: known.find(text, limit, meant))
        ranked = sorted(found.items(), key=lambda each: (-each[1], each[0]))
        return [FoundName(name, round(score, 3)) for name, score in ranked[:limit]]

    async def duplicates(
        self, workspace: EngineWorkspace, *, min_score: float, apart: Collection[frozenset[str]], limit: int
    ) -> Sequence[DuplicateGroup]:
        """`EntityGraph.duplicates`."""
        with inside(workspace.ref):
            best = await self._read(workspace, _Known.best_pairs)
            pairs = [pair for pair in best if frozenset((pair.one, pair.other)) not in apart][:MAX_PAIRS]
            reads = self._reads(workspace)
            neighbours = await reads.neighbours_of({name for pair in pairs for name in (pair.one, pair.other)})
            judged = await _judged(workspace, reads, pairs, neighbours)
        kept = [AlikePair(pair.one, pair.other, pair.score, "") for pair in judged.values() if pair.score >= min_score]
        groups = [_group(found, judged, neighbours) for found in groups_of(kept, apart)]
        return sorted(groups, key=lambda group: (-group.score, group.names))[:limit]

    async def _read(self, workspace: EngineWorkspace, reading: Callable[[_Known], Result]) -> Result:
        """`reading` of the workspace's names as they are now. What it returns must not change with them."""
        known = self._known.setdefault(workspace.ref.workspace_id, _Known())
        self._known.move_to_end(workspace.ref.workspace_id)
        while len(self._known) > REMEMBERED_WORKSPACES:
            self._known.popitem(last=False)
        version = workspace.corpus_version
        async with known.lock:
            is_old = known.version is None or known.version != version
            names = await self._reads(workspace).names() if is_old else None
            return await asyncio.to_thread(known.read, names, version, reading)


async def _judged(
    workspace: EngineWorkspace, reads: GraphReads, pairs: Sequence[AlikePair], neighbours: Mapping[str, set[str]]
) -> dict[tuple[str, str], DuplicatePair]:
    """With what the graph says for it: the same neighbours, and descriptions that are near each other."""
    near = await reads.nearness([(pair.one, pair.other) for pair in pairs], workspace.vector_suffix) if pairs else {}
    judged = {}
    for pair in pairs:
        reasons, score = [pair.reason], pair.score
        left, right = (neighbours.get(name, set()) - {pair.one, pair.other} for name in (pair.one, pair.other))
        shared = len(left & right) / len(left | right) if left and right else 0.0
        for holds, reason in (
            (shared >= SHARED_NEIGHBOURS, "shared_neighbours"),
            (near.get((pair.one, pair.other), 0.0) >= NEAR, "embedding"),
        ):
            if holds:
                reasons.append(reason)
                score = min(1.0, score + GRAPH_ADDS)
        judged[pair.one, pair.other] = DuplicatePair(pair.one, pair.other, round(score, 3), tuple(reasons))
    return judged


def _group(
    found: Sequence[AlikePair], judged: Mapping[tuple[str, str], DuplicatePair], neighbours: Mapping[str, set[str]]
) -> DuplicateGroup:
    names = {name for pair in found for name in (pair.one, pair.other)}
    ordered = sorted(names, key=lambda name: (-len(neighbours.get(name, ())), -len(name), name))
    pairs = tuple(judged[pair.one, pair.other] for pair in found)
    return DuplicateGroup(tuple(ordered), max(pair.score for pair in pairs), pairs)
