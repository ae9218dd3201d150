"""A graph of one's own for each workspace: who can make it, reach it and drop it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from app.db.base import WorkspaceId
from app.db.provision import DatabaseUrls
from tests.factories import Tenancy

pytestmark = pytest.mark.age

CREATE = "CREATE (n:base {entity_id: $name}) RETURN n"
CYPHER = (
    "MATCH (n) RETURN n",
    "MATCH (n:base) RETURN n",
    "MATCH (n:base)-[r:DIRECTED]-(m) RETURN r",
    CREATE,
    "CREATE (n) RETURN n",
    "MERGE (n:base {entity_id: $name}) SET n.x = 1 RETURN n",
    "MATCH (n:base) SET n.x = 1 RETURN n",
    "MATCH (n:base) DETACH DELETE n RETURN n",
)


@asynccontextmanager
async def engine_of(urls: DatabaseUrls, tenancy: Tenancy) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(urls.engine)
    try:
        await connection.execute("SELECT set_config('app.tenant_id', $1, false)", str(tenancy.tenant_id))
        yield connection
    finally:
        await connection.close()


async def enter(connection: asyncpg.Connection, graph: str) -> None:
    await connection.execute("SELECT set_config('role', $1, false)", graph)
    await connection.execute("SET search_path = ag_catalog, public")


async def cypher(connection: asyncpg.Connection, graph: str, query: str) -> list[asyncpg.Record]:
    statement = f"SELECT * FROM cypher('{graph}', $query${query}$query$, $1) AS (found agtype)"
    found: list[asyncpg.Record] = await connection.fetch(statement, '{"name": "Ada Marsh"}')
    return found


async def open_graph(connection: asyncpg.Connection, workspace_id: WorkspaceId) -> str:
    await connection.execute("SELECT open_graph($1)", workspace_id)
    return str(await connection.fetchval("SELECT graph_name($1)", workspace_id))


async def test_opening_twice_is_opening_once(tenancy: Tenancy, urls: DatabaseUrls) -> None:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    async with engine_of(urls, tenancy) as connection:
        assert await connection.fetchval("SELECT graph_store_obstacle()") is None
        assert await connection.fetchval("SELECT open_graph($1)", workspace_id)
        assert not await connection.fetchval("SELECT open_graph($1)", workspace_id)


async def test_a_graph_is_reached_through_its_own_role_only(
    tenancy: Tenancy, other_tenancy: Tenancy, urls: DatabaseUrls
) -> None:
    ours, others = [await each.add_workspace(engines=("lazy", "graph")) for each in (tenancy, other_tenancy)]
    async with engine_of(urls, tenancy) as connection, engine_of(urls, other_tenancy) as other:
        graph, foreign = await open_graph(connection, ours), await open_graph(other, others)
        await enter(other, foreign)
        await cypher(other, foreign, CREATE)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(f"SELECT * FROM {graph}.base")
        await enter(connection, graph)
        for query in CYPHER:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await cypher(connection, foreign, query)
            await cypher(connection, graph, query)
        for statement in (f"SELECT * FROM {foreign}.base", f"SELECT ag_catalog.drop_graph('{foreign}', true)",
                          f"SELECT ag_catalog.drop_graph('{graph}', true)", "SELECT ag_catalog.create_graph('evil')",
                          f'CREATE TABLE {graph}.evil ()', "SELECT * FROM public.documents"):  # fmt: skip
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)
        assert len(await cypher(other, foreign, "MATCH (n) RETURN n")) == 1


async def test_only_workspaces_of_the_transactions_tenant_are_opened(
    tenancy: Tenancy, other_tenancy: Tenancy, urls: DatabaseUrls
) -> None:
    workspace_id = await other_tenancy.add_workspace(engines=("lazy", "graph"))
    async with engine_of(urls, tenancy) as connection:
        with pytest.raises(asyncpg.NoDataFoundError):
            await connection.execute("SELECT open_graph($1)", workspace_id)


async def test_a_dropped_graph_leaves_neither_schema_nor_role(tenancy: Tenancy, urls: DatabaseUrls) -> None:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    async with engine_of(urls, tenancy) as connection:
        graph = await open_graph(connection, workspace_id)
        assert await connection.fetchval("SELECT drop_graph($1)", workspace_id)
        assert not await connection.fetchval("SELECT drop_graph($1)", workspace_id)
        assert await connection.fetchval("SELECT to_regnamespace($1) IS NULL AND to_regrole($1) IS NULL", graph)
