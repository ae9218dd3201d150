"""Copies a workspace's graph from one store to another: what differs is found by digests of whole rows, read from both.

So a copy that was broken off goes on where it was, and the last pass, which finds nothing left to do, is the proof.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from app.errors import Conflict
from app.retrieval.contract import EngineWorkspace, GraphStoreName, WorkspaceRef
from app.retrieval.lightrag.age.rows import AgeRows
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.rows_store import KINDS, Key, Kind, Properties, Rows, TableRows

BATCH = 500


class MovedGraphDiffers(Conflict):
    """The copy is not the original. Nothing was switched over."""

    code = "moved_graph_differs"
    title = "The copied graph differs"


@dataclass(frozen=True)
class Difference:
    """What one store would have to change to hold what the other one holds."""

    missing: Sequence[Key]
    extra: Sequence[Key]

    def __len__(self) -> int:
        return len(self.missing) + len(self.extra)


class GraphMover:
    """`GraphMoves` between the stores of one installation."""

    def __init__(self, database: EngineDatabase) -> None:
        self._database = database

    async def copy(self, workspace: EngineWorkspace, to: GraphStoreName) -> int:
        """Make the store `to` hold what the workspace's graph holds now; how many rows that changed."""
        with inside(workspace.ref):
            source, target = self._rows(workspace.ref, workspace.ref.graph_store), self._rows(workspace.ref, to)
            await target.prepare()
            nodes, edges = [await _difference(source, target, kind) for kind in KINDS]
            # Relations go before what they join, and come after it.
            await _remove(target, "edges", edges.extra)
            await _remove(target, "nodes", nodes.extra)
            await _write(source, target, "nodes", nodes.missing)
            await _write(source, target, "edges", edges.missing)
        return len(nodes) + len(edges)

    async def verify(self, workspace: EngineWorkspace, to: GraphStoreName) -> int:
        """Compare every row; how many there are. Raises `MovedGraphDiffers`."""
        with inside(workspace.ref):
            source, target = self._rows(workspace.ref, workspace.ref.graph_store), self._rows(workspace.ref, to)
            count = 0
            for kind in KINDS:
                count += len(await _digests(source, kind))
                if left := len(await _difference(source, target, kind)):
                    raise MovedGraphDiffers(f"{left} {kind} differ between the stores", kind=kind, rows=left)
        return count

    async def give_up(self, workspace: EngineWorkspace, store: GraphStoreName) -> None:
        """Remove what `store` holds of a workspace that keeps its graph elsewhere."""
        with inside(workspace.ref):
            await self._rows(workspace.ref, store).clear()

    def _rows(self, ref: WorkspaceRef, store: GraphStoreName) -> Rows:
        return AgeRows(self._database, ref) if store == "age" else TableRows(self._database, ref)


async def _remove(target: Rows, kind: Kind, keys: Sequence[Key]) -> None:
    for part in _parts(keys):
        await target.delete(kind, part)


async def _write(source: Rows, target: Rows, kind: Kind, keys: Sequence[Key]) -> None:
    for part in _parts(keys):
        if rows := await source.read(kind, part):
            await target.write(kind, rows)


async def _difference(source: Rows, target: Rows, kind: Kind) -> Difference:
    wanted, held = await _digests(source, kind), await _digests(target, kind)
    missing = [key for key, digest in wanted.items() if held.get(key) != digest]
    return Difference(missing, [key for key in held if key not in wanted])


async def _digests(rows: Rows, kind: Kind) -> dict[Key, bytes]:
    found: dict[Key, bytes] = {}
    async for page in rows.pages(kind):
        for key, properties in page:
            if key in found:
                raise MovedGraphDiffers(f"a store holds one of its {kind} twice", kind=kind)
            found[key] = _digest(properties)
    return found


def _digest(properties: Properties) -> bytes:
    """Equal for equal values, whether a store writes 1 or 1.0."""
    values = {name: float(value) if isinstance(value, int | float) else value for name, value in properties.items()}
    return blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=16).digest()


def _parts(keys: Sequence[Key]) -> Sequence[Sequence[Key]]:
    return [keys[start : start + BATCH] for start in range(0, len(keys), BATCH)]
