"""Finds entities by names that are like a given one, and entities whose names are like each other's.

What was compared is remembered by each process: after a change of the corpus only names that are new are compared.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID

from app.retrieval.contract import EngineWorkspace
from app.retrieval.entity_graph_contract import Decisions, DuplicateGroup, DuplicatePair, FoundName, Pairs
from app.retrieval.lightrag.entities.plan import UNKNOWN
from app.retrieval.lightrag.entities.walking import EntityWalking
from app.retrieval.lightrag.graph_reads_store import GraphReads
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.names import shorten
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
# The reason of a pair that somebody said is one thing.
ACCEPTED = "accepted"


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
            meant = (await self._long(workspace).whole([meant])).get(meant, meant) if meant else None
            found = await self._read(workspace, lambda known: known.find(text, limit, meant))
        ranked = sorted(found.items(), key=lambda each: (-each[1], each[0]))
        return [FoundName(name, round(score, 3)) for name, score in ranked[:limit]]

    async def duplicates(
        self, workspace: EngineWorkspace, *, min_score: float | None, decisions: Decisions, limit: int
    ) -> Sequence[DuplicateGroup]:
        """`EntityGraph.duplicates`."""
        with inside(workspace.ref):
            best = await self._read(workspace, _Known.best_pairs)
            same, apart = await self._meant_by(workspace, decisions)
            told = await self._accepted(workspace, same - apart)
            found = [*told, *(best if min_score is not None else ())]
            pairs = [pair for pair in found if frozenset((pair.one, pair.other)) not in apart][:MAX_PAIRS]
            reads = self._reads(workspace)
            names = {name: shorten(name) for pair in pairs for name in (pair.one, pair.other)}
            around = await reads.neighbours_of(names.values())
            neighbours = {name: around[short] for name, short in names.items() if short in around}
            judged = await _judged(workspace, reads, pairs, neighbours)
            least = 1.0 if min_score is None else min_score
            kept = [AlikePair(pair.one, pair.other, pair.score, "") for pair in judged.values() if pair.score >= least]
            groups = [_group(found, judged, neighbours) for found in groups_of(kept, apart)]
            groups = sorted(groups, key=lambda group: (-group.score, group.names))[:limit]
            rows = await reads.nodes({shorten(name) for group in groups for name in group.names})
        types = {row["entity_name"]: row["entity_type"] for row in rows}
        return [replace(group, types=_known_types(group.names, types)) for group in groups]

    async def _meant_by(self, workspace: EngineWorkspace, decisions: Decisions) -> tuple[Pairs, Pairs]:
        """The pairs under the names that hold by now, without those that have become one."""
        told = (decisions.same, decisions.apart)
        meant = await self._aliases(workspace).meanings({name for pairs in told for pair in pairs for name in pair})
        whole = await self._long(workspace).whole(meant.values())
        meant = {name: whole.get(end, end) for name, end in meant.items()}

        def renamed(pairs: Pairs) -> Pairs:
            now = (frozenset(meant.get(name, name) for name in pair) for pair in pairs)
            return frozenset(pair for pair in now if len(pair) == 2)

        return renamed(told[0]), renamed(told[1])

    async def _accepted(self, workspace: EngineWorkspace, same: Pairs) -> list[AlikePair]:
        """Of these pairs those whose entities are there."""
        known = await self._read(workspace, lambda known: frozenset(known.lookup.names))
        ordered = sorted((min(pair), max(pair)) for pair in same if pair <= known)
        return [AlikePair(*pair, 1.0, ACCEPTED) for pair in ordered]

    async def _read(self, workspace: EngineWorkspace, reading: Callable[[_Known], Result]) -> Result:
        """`reading` of the workspace's names as they are now. What it returns must not change with them."""
        known = self._known.setdefault(workspace.ref.workspace_id, _Known())
        self._known.move_to_end(workspace.ref.workspace_id)
        while len(self._known) > REMEMBERED_WORKSPACES:
            self._known.popitem(last=False)
        version = workspace.corpus_version
        async with known.lock:
            is_old = known.version is None or known.version != version
            names = await self._whole_names(workspace) if is_old else None
            return await asyncio.to_thread(known.read, names, version, reading)

    async def _whole_names(self, workspace: EngineWorkspace) -> list[str]:
        names = await self._reads(workspace).names()
        whole = await self._long(workspace).whole(names)
        return [whole.get(name, name) for name in names]


async def _judged(
    workspace: EngineWorkspace, reads: GraphReads, pairs: Sequence[AlikePair], neighbours: Mapping[str, set[str]]
) -> dict[tuple[str, str], DuplicatePair]:
    """With what the graph says for it: the same neighbours, and descriptions that are near each other."""
    asked = {(pair.one, pair.other): (shorten(pair.one), shorten(pair.other)) for pair in pairs}
    near = await reads.nearness(list(asked.values()), workspace.vector_suffix) if pairs else {}
    judged: dict[tuple[str, str], DuplicatePair] = {}
    for pair in pairs:
        if (pair.one, pair.other) in judged:
            # Accepted pairs come first; what else speaks for them is of no interest.
            continue
        reasons, score = [pair.reason], pair.score
        left, right = (neighbours.get(name, set()) - {*asked[pair.one, pair.other]} for name in (pair.one, pair.other))
        shared = len(left & right) / len(left | right) if left and right else 0.0
        for holds, reason in (
            (shared >= SHARED_NEIGHBOURS, "shared_neighbours"),
            (near.get(asked[pair.one, pair.other], 0.0) >= NEAR, "embedding"),
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
    told = {name for pair in pairs if ACCEPTED in pair.reasons for name in (pair.one, pair.other)}
    return DuplicateGroup(tuple(ordered), max(pair.score for pair in pairs), pairs, is_accepted=told == names)


def _known_types(names: Sequence[str], types: Mapping[str, str | None]) -> tuple[str, ...]:
    return tuple(sorted({kind for name in names if (kind := types.get(shorten(name))) and kind.upper() != UNKNOWN}))
