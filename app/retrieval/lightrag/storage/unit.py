"""The unit of work: collects what one operation of LightRAG writes and commits it in one short transaction.

    async with open_unit(rag, lease) as unit:
        track_id = await rag.ainsert(...)
        unit.require_processed(document_id, track_id)
        await unit.commit(statements_of_our_own)

Leaving without `commit` throws everything away.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import structlog
from lightrag import LightRAG
from lightrag.base import DocStatus
from lightrag.namespace import NameSpace
from lightrag.utils import make_relation_chunk_key

from app.retrieval.contract import GraphWriteFailed, Lease, Statement, Vector, WorkspaceBusy
from app.retrieval.lightrag.pool import inside
from app.retrieval.lightrag.storage.commit import Commit, commit, read_epoch, run_shielded
from app.retrieval.lightrag.storage.context import UnitClosed, UnitConflict, enter_unit
from app.retrieval.lightrag.storage.doc_status_overlay import DocStatusOverlay
from app.retrieval.lightrag.storage.engine_stores import EngineStores
from app.retrieval.lightrag.storage.extraction_cache import TABLE as CACHE_TABLE
from app.retrieval.lightrag.storage.graph_overlay import GraphOverlay, Pair
from app.retrieval.lightrag.storage.kv_overlay import KvOverlay
from app.retrieval.lightrag.storage.sql import delete_by_id
from app.retrieval.lightrag.storage.vector_overlay import VectorOverlay
from app.retrieval.lightrag.storage.weight import UnitLimits, UnitWeight

T = TypeVar("T")

log = structlog.stdlib.get_logger(__name__)

# Vectors that are known already, by text. What it does not return is embedded.
VectorLookup = Callable[[Sequence[str]], Awaitable[Mapping[str, Vector]]]

CONFLICTS_BEFORE_GIVING_UP = 3

# One unit a workspace a process: LightRAG's locks and its pipeline state are of the process.
_open_workspaces: set[str] = set()


class UnitOfWork:
    """One operation's writes over what is in Postgres. The storages find it through the running task's context."""

    def __init__(self, stores: EngineStores, lease: Lease, *, limits: UnitLimits, lookup: VectorLookup | None) -> None:
        self.id = uuid4()
        self.workspace = lease.ref.engine_name
        self.is_closed = False
        self.is_committed = False
        # Answers of the extraction cache that go with the transaction.
        self.forgotten_answers: set[str] = set()
        self._stores = stores
        self._lease = lease
        self._lookup = lookup
        self._epoch = -1
        self._weight = UnitWeight(limits)
        self.kv = {name: KvOverlay(store.table, store.read_rows, self._weight) for name, store in stores.kv.items()}
        self.vectors = {
            name: VectorOverlay(store.vector_table, store.read_items, self._weight)
            for name, store in stores.vectors.items()
        }
        self.graph = GraphOverlay(stores.graph.reader(), self._weight)
        self.documents = DocStatusOverlay(stores.documents.read_where, self._weight)

    async def begin(self) -> None:
        """Raises `LeaseLost`."""
        self._epoch = await read_epoch(self._stores.database, self._lease)

    # --- Reading ahead: LightRAG asks for one row at a time, in an order that is known before ---

    async def read_ahead(self, namespace: str, row: Mapping[str, Any]) -> None:
        """Load what a document's list of entities or relations says that LightRAG will ask for."""
        if namespace == NameSpace.KV_STORE_FULL_ENTITIES:
            names = row.get("entity_names") or []
            await asyncio.gather(self.graph.load_nodes(names), self.kv[NameSpace.KV_STORE_ENTITY_CHUNKS].load(names))
        elif namespace == NameSpace.KV_STORE_FULL_RELATIONS:
            await self.read_ahead_edges((min(pair), max(pair)) for pair in row.get("relation_pairs") or [])

    async def read_ahead_edges(self, pairs: Iterable[Pair]) -> None:
        """Load edges with the lists of their chunks."""
        wanted = list(pairs)
        keys = [make_relation_chunk_key(*pair) for pair in wanted]
        await asyncio.gather(self.graph.load_edges(wanted), self.kv[NameSpace.KV_STORE_RELATION_CHUNKS].load(keys))

    async def read_ahead_entities(self, names: Sequence[str]) -> None:
        """Load all that a merge, a rename or a removal of these entities will ask for."""
        await asyncio.gather(
            self.graph.load_nodes(names),
            self.graph.load_neighbourhoods(names),
            self.kv[NameSpace.KV_STORE_ENTITY_CHUNKS].load(names),
        )
        pairs = {pair for name in names for pair in await self.graph.pairs_of(name)}
        await asyncio.gather(
            self.read_ahead_edges(sorted(pairs)), self.graph.load_nodes({name for pair in pairs for name in pair})
        )

    def expect_new(self, document_id: str) -> None:
        """The database was seen to hold nothing of the only document that this unit writes: LightRAG's own questions, whether
        it is a duplicate, need not be asked there. It gets texts that never repeat."""
        self.documents.expect_new(document_id)
        self.kv[NameSpace.KV_STORE_FULL_DOCS].expect_new(document_id)

    # --- Outcome ---

    def require_processed(self, document_id: str, track_id: str) -> None:
        """LightRAG reports no failure of an insert; its documents in this unit tell it (facts F3, F4).

        Raises what a storage raised, or `GraphWriteFailed`.
        """
        self._raise_failure()
        require_processed(self.documents.written(), document_id, track_id)

    async def commit(self, companions: Sequence[Statement] = ()) -> None:
        """Write everything, and the caller's own statements last, in one transaction; the unit is over then.

        Raises `UnitConflict` if somebody else wrote since `begin`, `OutcomeUnknown` if nobody can tell whether it went
        in, and what a storage raised earlier. A cancellation that comes while it goes in is swallowed.
        """
        self._raise_failure()
        await self._stores.cache.flush()
        vectors = await self._embed()
        what = Commit(
            unit_id=self.id,
            ref=self._lease.ref,
            epoch=self._epoch,
            statements=[*self._statements(vectors), *companions],
            timeout_seconds=self._weight.limits.commit_timeout_seconds,
        )
        self.is_closed = True

        async def write() -> None:
            await commit(self._stores.database, what)
            self.is_committed = True

        await run_shielded(write)

    async def close(self) -> None:
        """Refuse what is left of the operation's tasks, and keep the answers that were paid for."""
        self.is_closed = True
        for name in ("kv", "vectors", "graph", "documents"):
            # Tasks that live longer than the unit keep it alive; what it held has to go.
            vars(self).pop(name, None)
        await self._stores.cache.flush()

    def _raise_failure(self) -> None:
        """Raise what a storage raised inside, which LightRAG may have turned into a failed document."""
        if self.is_closed:
            raise UnitClosed("this unit of work is over")
        if self._weight.failure is not None:
            raise self._weight.failure

    async def _embed(self) -> dict[str, Vector]:
        """A vector for every new text of the three tables, in full batches."""
        texts = list(dict.fromkeys(text for overlay in self.vectors.values() for text in overlay.texts()))
        vectors = dict(await self._lookup(texts)) if self._lookup is not None and texts else {}
        missing = [text for text in texts if text not in vectors]
        size = self._stores.embedding_batch
        batches = [missing[start : start + size] for start in range(0, len(missing), size)]
        embedded = await asyncio.gather(*(self._stores.embed(batch, context="document") for batch in batches))
        for batch, found in zip(batches, embedded, strict=True):
            rows = np.asarray(found, dtype=np.float32)
            self._weight.add(0, rows.nbytes)
            vectors.update(zip(batch, rows, strict=True))
        return vectors

    def _statements(self, vectors: Mapping[str, Vector]) -> Iterator[Statement]:
        """Deletes first, nodes before edges, and so on as the foreign keys want it; rows in the order of their keys."""
        name, namespace = self.workspace, self._stores.graph.namespace
        moment = datetime.now(UTC).replace(tzinfo=None)
        yield from self.graph.deletes(name, namespace)
        for rows in self.kv.values():
            yield from rows.deletes(name)
        for items in self.vectors.values():
            yield from items.deletes(name)
        yield from self.documents.deletes(name)
        yield from delete_by_id(CACHE_TABLE, name, list(self.forgotten_answers))
        yield from self.graph.upserts(name, namespace)
        for rows in self.kv.values():
            yield from rows.upserts(name, moment)
        for items in self.vectors.values():
            yield from items.upserts(name, moment, vectors)
        yield from self.documents.upserts(name)


@asynccontextmanager
async def open_unit(
    rag: LightRAG, lease: Lease, *, limits: UnitLimits | None = None, lookup: VectorLookup | None = None
) -> AsyncIterator[UnitOfWork]:
    """Everything that `rag` does inside belongs to one unit. The lease must be held.

    Raises `WorkspaceBusy` if this process has a unit open in the workspace, and `LeaseLost`.
    """
    workspace = lease.ref.engine_name
    if workspace in _open_workspaces:
        raise WorkspaceBusy("this process is writing the workspace already")
    _open_workspaces.add(workspace)
    try:
        with inside(lease.ref):
            unit = UnitOfWork(EngineStores.of(rag), lease, limits=limits or UnitLimits(), lookup=lookup)
            leave = enter_unit(unit)
            try:
                await unit.begin()
                yield unit
            finally:
                leave()
                await unit.close()
    finally:
        _open_workspaces.discard(workspace)


async def run_in_unit(
    rag: LightRAG,
    lease: Lease,
    operation: Callable[[UnitOfWork], Awaitable[T]],
    *,
    limits: UnitLimits | None = None,
    lookup: VectorLookup | None = None,
) -> T:
    """Run an operation that commits its unit, again from the start if somebody else wrote in between.

    Extraction is cached by then, so a repetition costs little. Raises `UnitConflict` after three of them.
    """

    async def run() -> T:
        async with open_unit(rag, lease, limits=limits, lookup=lookup) as unit:
            return await operation(unit)

    for _ in range(CONFLICTS_BEFORE_GIVING_UP - 1):
        try:
            return await run()
        except UnitConflict:
            log.warning("unit_conflict", workspace=lease.ref.engine_name)
    return await run()


def require_processed(rows: Iterable[Mapping[str, Any]], document_id: str, track_id: str) -> None:
    """Raise `GraphWriteFailed` unless these document statuses say that this insert was done, and as no duplicate."""
    found = {row["id"]: row for row in rows}
    row = found.pop(document_id, None)
    if row is None or row["track_id"] != track_id:
        raise GraphWriteFailed("the engine refused the document as a duplicate", status="missing")
    if any(other["metadata"].get("is_duplicate") for other in found.values()):
        raise GraphWriteFailed("the engine took the document for a duplicate", status="duplicate")
    if row["status"] != DocStatus.PROCESSED.value:
        # The engine's own message may hold text of the document.
        raise GraphWriteFailed(f"the engine left the document {row['status']}", status=row["status"])
