"""C32: whatever commits while a query runs, it answers from the old content or from the new one, whole."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import text

from app.bootstrap import Worker
from app.db.base import WorkspaceId
from app.db.session import Database
from app.jobs import PurgeGraphVersion
from tests.api.conftest import Index
from tests.api.documents import DIRECT_MODES, set_state, until, upload_text
from tests.factories import Tenancy
from workers.task import attempt

SHIPS = ("Tonnberg", "Seeadler", "Kormoran", "Albatros", "Rungholt", "Pellworm")
ASKED_AT_ONCE = 2
WAITING = "SELECT count(*) FROM pg_locks WHERE relation = CAST(:table AS regclass) AND NOT granted"


def content(ship: str) -> str:
    return f"Captain Ada Moreau commands the {ship} in Port Lindau.\n\n# Crew\n\nThe {ship} carries Ada Moreau and Ben Okri."


def ships_in(answer: str) -> set[str]:
    return {ship for ship in SHIPS if ship in answer}


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=("lazy", "graph"))


@pytest.fixture
async def document(client: httpx.AsyncClient, tenancy: Tenancy, index: Index, workspace_id: WorkspaceId) -> Any:
    made = await upload_text(client, workspace_id, content(SHIPS[0]))
    await index(tenancy, made)
    for number in range(3):
        other = await upload_text(client, workspace_id, f"Dana Weber met Ada Moreau in Port Lindau{number}.")
        await index(tenancy, other)
    return made


async def ask(client: httpx.AsyncClient, workspace_id: WorkspaceId, mode: str) -> set[str]:
    body = {"query": "Which ship does Captain Ada Moreau command in Port Lindau?", "mode": mode}
    response = await client.post(f"/v1/workspaces/{workspace_id}/query", json=body)
    assert response.status_code == 200, response.text
    return ships_in(response.text)


async def replace(client: httpx.AsyncClient, document: Any, ship: str) -> Any:
    response = await client.put(document["links"]["content"], json={"text": content(ship)})
    assert response.status_code == 202, response.text
    return response.json()


async def test_a_query_sees_one_content_however_often_it_is_replaced(
    client: httpx.AsyncClient,
    tenancy: Tenancy,
    worker: Worker,
    index: Index,
    workspace_id: WorkspaceId,
    document: Any,
) -> None:
    """Old contents are removed meanwhile, so that the workspace is written all the time."""
    modes = itertools.cycle(DIRECT_MODES)
    answers: list[tuple[str, set[str]]] = []
    written = asyncio.Event()

    async def keep_asking() -> None:
        while not written.is_set():
            mode = next(modes)
            answers.append((mode, await ask(client, workspace_id, mode)))

    async def keep_replacing() -> None:
        current = document
        for ship in SHIPS[1:]:
            replaced, current = current, await replace(client, document, ship)
            await index(tenancy, current)
            ids = (tenancy.tenant_id, workspace_id, UUID(replaced["version"]["id"]))
            await attempt(worker.jobs, PurgeGraphVersion(*ids), runs=1)
        written.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(keep_replacing())
        for _ in range(ASKED_AT_ONCE):
            group.create_task(keep_asking())
    assert [(mode, ships) for mode, ships in answers if len(ships) != 1] == []
    for mode in DIRECT_MODES:
        assert await ask(client, workspace_id, mode) == {SHIPS[-1]}


@asynccontextmanager
async def unreadable(owner_database: Database, table: str) -> AsyncIterator[None]:
    """Whoever reads the table waits until the block ends."""
    async with owner_database.system() as session:
        await session.execute(text(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
        yield


async def is_waited_for(owner_database: Database, table: str) -> None:
    async def waits() -> Any:
        async with owner_database.system() as session:
            return await session.scalar(text(WAITING), {"table": table})

    await until(waits)


async def test_a_graph_query_held_up_amid_its_legs_still_sees_what_it_began_with(
    client: httpx.AsyncClient,
    tenancy: Tenancy,
    owner_database: Database,
    index: Index,
    workspace_id: WorkspaceId,
    document: Any,
) -> None:
    new = await replace(client, document, "Seeadler")
    await index(tenancy, {**new, "engines": ["lazy"]})
    async with unreadable(owner_database, "term_postings"):
        asking = asyncio.create_task(ask(client, workspace_id, "mix"))
        await is_waited_for(owner_database, "term_postings")
        await index(tenancy, {**new, "engines": ["graph"]})
        assert (await client.get(document["links"]["self"])).json()["status"] == "ready"
    assert await asking == {"Tonnberg"}
    assert await ask(client, workspace_id, "mix") == {"Seeadler"}


async def test_a_lazy_query_held_up_amid_its_walk_still_sees_what_it_began_with(
    client: httpx.AsyncClient,
    tenancy: Tenancy,
    owner_database: Database,
    index: Index,
    workspace_id: WorkspaceId,
    document: Any,
) -> None:
    new = await replace(client, document, "Seeadler")
    await index(tenancy, {**new, "engines": ["lazy"]})
    await set_state(tenancy, document, "lazy", state="ready")  # live again, and both are indexed
    async with unreadable(owner_database, "lazy_passages"):
        asking = asyncio.create_task(ask(client, workspace_id, "lazy"))
        await is_waited_for(owner_database, "lazy_passages")
        await set_state(tenancy, new, "lazy", state="ready")
    assert await asking == {"Tonnberg"}


async def test_an_entity_is_read_as_of_one_moment(
    client: httpx.AsyncClient, owner_database: Database, workspace_id: WorkspaceId, document: Any
) -> None:
    link = f"/v1/workspaces/{workspace_id}/entities/Ada Moreau"
    before = (await client.get(link)).json()
    assert before["relations"]
    async with owner_database.system() as session:
        await session.execute(text("LOCK TABLE lightrag_graph_edges IN ACCESS EXCLUSIVE MODE"))
        reading = asyncio.create_task(client.get(link))
        await is_waited_for(owner_database, "lightrag_graph_edges")
        for table in ("lightrag_graph_nodes", "lightrag_graph_edges"):
            changed = f"UPDATE {table} SET properties = jsonb_set(properties, '{{description}}', '\"new\"') WHERE workspace = :name"
            await session.execute(text(changed), {"name": f"w_{workspace_id.hex}"})
    assert (await reading).json() == before
    after = (await client.get(link)).json()
    assert {after["description"], *(relation["description"] for relation in after["relations"])} == {"new"}
