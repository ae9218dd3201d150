"""One engine for all tests of a process, and workspaces with small deterministic models."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from sqlalchemy import text

from app.db.session import Database
from app.db.vector_tables import create_vector_tables
from app.retrieval.contract import GraphStoreName
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.pool import EngineDatabase, open_engine_database
from app.retrieval.lightrag.search import GraphSearch
from app.retrieval.lightrag.stores import STOCK, UNITS, Stores, Writes
from app.settings import Settings
from tests.factories import Tenancy
from tests.retrieval.lightrag.doubles import DIMENSION, OWNER, SUFFIX, Corpus

MakeCorpus = Callable[..., Awaitable[Corpus]]


@pytest.fixture(scope="module")
async def pool(settings: Settings, owner_database: Database) -> AsyncIterator[EngineDatabase]:
    async with owner_database.system() as session:
        await create_vector_tables(session, SUFFIX, DIMENSION)
    pool = await open_engine_database(settings)
    yield pool
    await pool.close()


@pytest.fixture(scope="module")
def stores_name(request: pytest.FixtureRequest) -> str:
    """The storages that Trellis runs on, or others where a module asks for all (`ALL_STORES`)."""
    return str(getattr(request, "param", "units"))


@pytest.fixture(scope="module")
def stores(stores_name: str) -> Stores:
    """On tables: those of workspaces that keep their graph in Apache AGE are told by the workspace."""
    return STOCK if stores_name == "stock" else UNITS


@pytest.fixture(scope="module")
def graph_store(stores_name: str) -> GraphStoreName:
    return "age" if stores_name == "age" else "table"


@pytest.fixture(scope="module")
async def instances(settings: Settings, pool: EngineDatabase, stores: Stores) -> AsyncIterator[InstancePool]:
    instances = InstancePool(settings, pool, stores)
    yield instances
    await instances.close()


@pytest.fixture
def index(pool: EngineDatabase, instances: InstancePool, stores: Stores) -> GraphWriter:
    return GraphWriter(pool, instances, Writes(stores))


@pytest.fixture
def search(pool: EngineDatabase, database: Database, instances: InstancePool) -> GraphSearch:
    return GraphSearch(pool, database, instances)


@pytest.fixture
def entities(pool: EngineDatabase, instances: InstancePool, stores: Stores) -> GraphEntities:
    return GraphEntities(pool, instances, Writes(stores))


ALL_STORES = pytest.mark.parametrize(
    "stores_name", ["units", "stock", pytest.param("age", marks=pytest.mark.age)], indirect=True
)
OURS_AND_AGE = pytest.mark.parametrize(
    "stores_name", ["units", pytest.param("age", marks=pytest.mark.age)], indirect=True
)
LEASE = "UPDATE workspace_leases SET owner = :owner, expires_at = now() + interval '1 hour' WHERE workspace_id = :id"


async def make_corpus(tenancy: Tenancy, graph_store: GraphStoreName = "table", **profile: object) -> Corpus:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"), graph_store=graph_store)
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        number = await session.scalar(text("SELECT number FROM workspaces WHERE id = :id"), {"id": workspace_id})
        await session.execute(text(LEASE), {"id": workspace_id, "owner": OWNER})
    assert isinstance(number, int)
    return Corpus.of(tenancy.database, tenancy.tenant_id, workspace_id, number, graph_store, **profile)


@pytest.fixture
async def corpus(tenancy: Tenancy, graph_store: GraphStoreName) -> Corpus:
    return await make_corpus(tenancy, graph_store)


@pytest.fixture
async def other_corpus(other_tenancy: Tenancy, graph_store: GraphStoreName) -> Corpus:
    return await make_corpus(other_tenancy, graph_store)
