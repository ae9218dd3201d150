"""The graph engine of a process, put together: what it writes, searches and browses with, over one pool."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from app.db.session import Database
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.graphs import Stores
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.moving import GraphMover
from app.retrieval.lightrag.pool import open_engine_database
from app.retrieval.lightrag.search import GraphSearch
from app.retrieval.lightrag.storage.weight import UnitLimits
from app.retrieval.lightrag.stores import STORES, Writes
from app.settings import Settings


@dataclass(frozen=True)
class GraphEngine:
    """The capabilities of the graph engine, and where it can keep graphs."""

    index: GraphWriter
    search: GraphSearch
    entities: GraphEntities
    stores: Stores
    moves: GraphMover


@asynccontextmanager
async def open_graph_engine(settings: Settings, database: Database) -> AsyncIterator[GraphEngine]:
    """The engine on the running loop, on the storages that `settings` name; one a process. `database` is the app role's, which knows what is trusted.

    Raises `UnsafeEnvironment`. Nothing connects before the first use.
    """
    stores = STORES[settings.graph_store]
    limits = UnitLimits(max_objects=settings.engine_unit_max_objects, max_bytes=settings.engine_unit_max_bytes)
    writes = Writes(stores, limits, at_once=settings.engine_units_at_once)
    pool = await open_engine_database(settings)
    try:
        instances = InstancePool(settings, pool, stores)
        try:
            yield GraphEngine(
                index=GraphWriter(pool, instances, writes),
                search=GraphSearch(pool, database, instances),
                entities=GraphEntities(pool, instances, writes),
                stores=Stores(pool),
                moves=GraphMover(pool),
            )
        finally:
            await instances.close()
    finally:
        await pool.close()
