"""Which storages LightRAG works on: named here and nowhere else, and entered in LightRAG's registry of plug-ins."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from lightrag.kg import STORAGE_ENV_REQUIREMENTS, STORAGE_IMPLEMENTATIONS, STORAGES
from lightrag.kg.pgtable_impl import PGTableGraphStorage
from lightrag.kg.postgres_impl import ClientManager
from lightrag.kg.shared_storage import get_data_init_lock

from app.retrieval.contract import Lease


class Operation(Protocol):
    """One write of LightRAG. Left without `commit`, storages with transactions have written nothing."""

    async def read_ahead(self, names: Sequence[str]) -> None:
        """Load all that a merge of these entities will ask for, where that saves round trips."""
        ...

    async def commit(self) -> None: ...


@dataclass(frozen=True)
class Stores:
    """The names of the four storages in LightRAG's registry, and how a write on them (instance, lease) is bracketed."""

    kv: str
    vector: str
    graph: str
    doc_status: str
    write: Callable[[Any, Lease], AbstractAsyncContextManager[Operation]]


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


class _Immediate:
    """LightRAG's own storages write as they go."""

    async def read_ahead(self, names: Sequence[str]) -> None:
        """They read as they go, too."""

    async def commit(self) -> None:
        """Nothing is left to be written."""


@asynccontextmanager
async def _write_at_once(_rag: Any, _lease: Lease) -> AsyncIterator[Operation]:
    yield _Immediate()


STOCK = Stores("PGKVStorage", "PGVectorStorage", "MigratedGraphStorage", "PGDocStatusStorage", _write_at_once)


def register(stores: Stores = STOCK) -> None:
    """Make the storages known to LightRAG. None of them asks for `POSTGRES_*` variables: the pool is ours."""
    STORAGES.setdefault("MigratedGraphStorage", __name__)
    for kind, name in (
        ("KV_STORAGE", stores.kv),
        ("VECTOR_STORAGE", stores.vector),
        ("GRAPH_STORAGE", stores.graph),
        ("DOC_STATUS_STORAGE", stores.doc_status),
    ):
        known = STORAGE_IMPLEMENTATIONS[kind]["implementations"]
        if name not in known:
            known.append(name)
        STORAGE_ENV_REQUIREMENTS[name] = []
