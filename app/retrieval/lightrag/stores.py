"""Which storages LightRAG works on: named here and nowhere else, and entered in LightRAG's registry of plug-ins."""

from dataclasses import dataclass
from typing import Any

from lightrag.kg import STORAGE_ENV_REQUIREMENTS, STORAGE_IMPLEMENTATIONS, STORAGES
from lightrag.kg.pgtable_impl import PGTableGraphStorage
from lightrag.kg.postgres_impl import ClientManager
from lightrag.kg.shared_storage import get_data_init_lock


@dataclass(frozen=True)
class Stores:
    """The names of the four storages in LightRAG's registry."""

    kv: str
    vector: str
    graph: str
    doc_status: str


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


STOCK = Stores("PGKVStorage", "PGVectorStorage", "MigratedGraphStorage", "PGDocStatusStorage")


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
