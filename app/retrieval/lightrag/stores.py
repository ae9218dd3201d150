"""Which storages LightRAG works on: named here and nowhere else, and entered in LightRAG's registry of plug-ins."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lightrag.kg import STORAGE_ENV_REQUIREMENTS, STORAGE_IMPLEMENTATIONS, STORAGES
from lightrag.kg.pgtable_impl import PGTableGraphStorage
from lightrag.kg.postgres_impl import ClientManager
from lightrag.kg.shared_storage import get_data_init_lock

from app.retrieval.contract import Lease, Statement, WorkspaceRef
from app.retrieval.lightrag.graph_store import require_store
from app.retrieval.lightrag.pool import only_while_held
from app.retrieval.lightrag.storage.commit import read_epoch, write_fenced
from app.retrieval.lightrag.storage.plugin import register_unit_stores
from app.retrieval.lightrag.storage.unit import UnitOfWork, VectorLookup, require_processed, run_in_unit
from app.retrieval.lightrag.storage.weight import UnitLimits


class Write(Protocol):
    """One operation of LightRAG that writes. Left without `commit`, storages with transactions have written nothing."""

    async def read_ahead(self, names: Sequence[str]) -> None:
        """Load all that a merge of these entities will ask for, where that saves round trips."""
        ...

    def expect_new(self, document_id: str) -> None:
        """Nothing of the only document that is written is there yet; saves asking where storages can be told."""
        ...

    async def require_processed(self, document_id: str, track_id: str) -> None:
        """LightRAG reports no failure of an insert (facts F3). Raises `GraphWriteFailed`, or what a storage raised."""
        ...

    async def announce(self, statements: Sequence[Statement]) -> None:
        """Run these now, where what follows could leave half of itself behind: they say what was going on."""
        ...

    async def commit(self, companions: Sequence[Statement] = ()) -> None:
        """Write, and our own statements last."""
        ...


Operation = Callable[[Write], Awaitable[None]]


@dataclass(frozen=True)
class Stores:
    """The names of the four storages in LightRAG's registry, and how an operation on them is run.

    `run(instance, lease, operation, limits, lookup)` may call the operation again from the start if another write came
    between. Texts that `lookup` has a vector for are not embedded again, where the storages embed at the end.
    """

    kv: str
    vector: str
    graph: str
    doc_status: str
    run: Callable[[Any, Lease, Operation, UnitLimits, VectorLookup | None], Awaitable[None]]
    is_atomic: bool


class Writes:
    """The writes of a process: so many at once, each within limits, for what they collect is held in memory."""

    def __init__(self, stores: Stores, limits: UnitLimits | None = None, *, at_once: int = 8) -> None:
        self._stores = stores
        self._limits = limits or UnitLimits()
        self._slots = asyncio.Semaphore(at_once)

    def are_atomic(self, ref: WorkspaceRef) -> bool:
        return stores_of(ref, self._stores).is_atomic

    async def run(self, rag: Any, lease: Lease, operation: Operation, *, lookup: VectorLookup | None = None) -> None:
        """Waits for its turn. Raises `UnitTooLarge`, `GraphStoreChanged`, and what the operation raises."""
        async with self._slots:
            # Whoever holds a lease need not know where the graph is; the instance was made for one place.
            stores = AGE if rag.graph_storage == AGE.graph else self._stores
            await require_store(rag.doc_status.db, lease.ref, "age" if stores is AGE else "table")
            await stores.run(rag, lease, operation, self._limits, lookup)


class MigratedGraphStorage(PGTableGraphStorage):  # type: ignore[misc]
    """LightRAG's graph in two plain tables, left as the migrations made them.

    The base class runs its DDL for every instance, which takes an ACCESS EXCLUSIVE lock on all tenants' graphs and wants
    to own the tables (facts F10).
    """

    db: Any

    async def initialize(self) -> None:
        async with get_data_init_lock():
            if self.db is None:
                self.db = await ClientManager.get_client(self.global_config.get("vector_storage"))


@dataclass(frozen=True)
class _WriteAtOnce:
    """LightRAG's own storages write as they go; only our own statements are left for the end."""

    rag: Any
    lease: Lease

    async def read_ahead(self, names: Sequence[str]) -> None:
        """They read as they go, too."""

    def expect_new(self, document_id: str) -> None:
        """They ask again."""

    async def require_processed(self, document_id: str, track_id: str) -> None:
        row = await self.rag.doc_status.get_by_id(document_id)
        require_processed([] if row is None else [row | {"id": document_id}], document_id, track_id)

    async def announce(self, statements: Sequence[Statement]) -> None:
        await write_fenced(self.rag.doc_status.db, self.lease, statements)

    async def commit(self, companions: Sequence[Statement] = ()) -> None:
        # Vectors wait in their storages until they are told that an operation is over.
        await self.rag._insert_done()
        await write_fenced(self.rag.doc_status.db, self.lease, companions)


async def _run_at_once(rag: Any, lease: Lease, operation: Operation, *_: object) -> None:
    await read_epoch(rag.doc_status.db, lease)
    with only_while_held(lease):
        await operation(_WriteAtOnce(rag, lease))


@dataclass(frozen=True)
class _WriteInUnit:
    unit: UnitOfWork

    async def read_ahead(self, names: Sequence[str]) -> None:
        await self.unit.read_ahead_entities(names)

    def expect_new(self, document_id: str) -> None:
        self.unit.expect_new(document_id)

    async def require_processed(self, document_id: str, track_id: str) -> None:
        self.unit.require_processed(document_id, track_id)

    async def announce(self, statements: Sequence[Statement]) -> None:
        """All of it is one transaction."""

    async def commit(self, companions: Sequence[Statement] = ()) -> None:
        await self.unit.commit(companions)


async def _run_in_unit(
    rag: Any, lease: Lease, operation: Operation, limits: UnitLimits, lookup: VectorLookup | None
) -> None:
    await run_in_unit(rag, lease, lambda unit: operation(_WriteInUnit(unit)), limits=limits, lookup=lookup)


# LightRAG's own storages: a write that breaks off leaves half of itself behind.
STOCK = Stores(
    "PGKVStorage", "PGVectorStorage", "MigratedGraphStorage", "PGDocStatusStorage", _run_at_once, is_atomic=False
)
# Ours: a write is one transaction.
UNITS = Stores(
    "UnitKVStorage", "UnitVectorStorage", "UnitGraphStorage", "UnitDocStatusStorage", _run_in_unit, is_atomic=True
)

# The same, with the graph in Apache AGE.
AGE = Stores("PGKVStorage", "PGVectorStorage", "AgeGraphStorage", "PGDocStatusStorage", _run_at_once, is_atomic=False)

# By the name that a setting gives them.
STORES: Mapping[str, Stores] = {"units": UNITS, "stock": STOCK}


def stores_of(ref: WorkspaceRef, tables: Stores) -> Stores:
    """The storages of a workspace: `tables`, unless it keeps its graph elsewhere."""
    return AGE if ref.graph_store == "age" else tables


def register(stores: Stores) -> None:
    """Make the storages known to LightRAG. None of them asks for `POSTGRES_*` variables: the pool is ours."""
    register_unit_stores()
    STORAGES.setdefault("MigratedGraphStorage", __name__)
    STORAGES.setdefault("AgeGraphStorage", "app.retrieval.lightrag.age.storage")
    for kind, names in (
        ("KV_STORAGE", (stores.kv, AGE.kv)),
        ("VECTOR_STORAGE", (stores.vector, AGE.vector)),
        ("GRAPH_STORAGE", (stores.graph, AGE.graph)),
        ("DOC_STATUS_STORAGE", (stores.doc_status, AGE.doc_status)),
    ):
        known = STORAGE_IMPLEMENTATIONS[kind]["implementations"]
        for name in names:
            if name not in known:
                known.append(name)
            STORAGE_ENV_REQUIREMENTS[name] = []
