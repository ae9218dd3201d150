"""Events are written with what they tell of, once, in the order of their commits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import text, update

from app.bootstrap import Worker
from app.db.base import WorkspaceId
from app.db.models import Event, IndexState
from app.db.session import Database, TenantSession
from app.domain.events.feed import EventFeed
from app.domain.events.repository import EventRepository
from app.jobs import PurgeDocument
from tests.api.conftest import Index
from tests.api.documents import set_state, until, upload_text
from tests.factories import Tenancy
from workers.task import attempt

READY = {"state": "ready", "stage": "done"}
GRAPH = ("lazy", "graph")


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=GRAPH)


@pytest.fixture
async def document(client: httpx.AsyncClient, workspace_id: WorkspaceId) -> Any:
    return await upload_text(client, workspace_id, "Captain Ada Moreau left Port Lindau.")


async def told(tenancy: Tenancy, workspace_id: WorkspaceId) -> list[Event]:
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        return list(await EventRepository(session).list(workspace_id, after=0, limit=100))


async def types(tenancy: Tenancy, workspace_id: WorkspaceId) -> list[str]:
    return [event.type.removeprefix("document.") for event in await told(tenancy, workspace_id)]


async def change(session: TenantSession, document: Any, **values: Any) -> None:
    await session.execute(
        update(IndexState).where(IndexState.version_id == UUID(document["version"]["id"])).values(**values)
    )


@asynccontextmanager
async def unfinished(tenancy: Tenancy, document: Any) -> AsyncIterator[None]:
    """A transaction that has given its event a number and is not committed before the block ends."""
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        await change(session, document, **READY)
        await session.execute(text("SET CONSTRAINTS ALL IMMEDIATE"))
        yield


async def test_what_became_of_a_document_is_told(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker, index: Index, workspace_id: WorkspaceId, document: Any
) -> None:
    await index(tenancy, document)
    assert await types(tenancy, workspace_id) == ["ready"]  # not one an engine
    bad = await upload_text(client, workspace_id, "  ")
    await index(tenancy, bad)
    called_off = await upload_text(client, workspace_id, "Other.")
    await client.post(f"{called_off['links']['self']}/cancel")
    await client.delete(document["links"]["self"])
    await attempt(worker.jobs, PurgeDocument(tenancy.tenant_id, workspace_id, UUID(document["id"])), runs=1)
    found = await told(tenancy, workspace_id)
    assert [event.type for event in found] == [
        "document.ready", "document.failed", "document.cancelled", "document.deleted",
    ]  # fmt: skip
    assert [event.id for event in found] == [1, 2, 3, 4]
    assert [str(event.document_id) for event in found] == [each["id"] for each in (document, bad, called_off, document)]
    assert str(found[0].version_id) == document["version"]["id"]


async def test_partial_and_a_second_failure_are_told(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, document: Any
) -> None:
    await set_state(tenancy, document, "lazy", **READY)
    await set_state(tenancy, document, "graph", state="failed", cleanliness="purging")
    assert await types(tenancy, workspace_id) == []  # it is not over yet
    await set_state(tenancy, document, "graph", cleanliness="clean")
    assert (await client.post(f"{document['links']['self']}/retry")).status_code == 202
    await set_state(tenancy, document, "graph", state="failed")
    assert await types(tenancy, workspace_id) == ["partial", "partial"]


async def test_what_is_rolled_back_is_not_told(tenancy: Tenancy, workspace_id: WorkspaceId, document: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        async with unfinished(tenancy, document):
            raise ZeroDivisionError
    assert await told(tenancy, workspace_id) == []


async def test_numbers_are_given_out_in_the_order_of_commits(
    client: httpx.AsyncClient, tenancy: Tenancy, owner_database: Database, workspace_id: WorkspaceId, document: Any
) -> None:
    """Otherwise a reader that has seen 2 would never see 1, which is committed later."""
    other = await upload_text(client, workspace_id, "Other.")

    async def commit_other() -> None:
        async with tenancy.database.tenant(tenancy.tenant_id) as session:
            await change(session, other, **READY)

    async def waits() -> Any:
        async with tenancy.database.system() as session:
            return await session.scalar(text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))

    async with unfinished(tenancy, document):
        task = asyncio.create_task(commit_other())
        await until(waits)
        assert not task.done()
        assert await told(tenancy, workspace_id) == []
    await task
    assert [(event.id, str(event.document_id)) for event in await told(tenancy, workspace_id)] == [
        (1, document["id"]),
        (2, other["id"]),
    ]


async def test_workspaces_do_not_wait_for_each_other(
    client: httpx.AsyncClient, tenancy: Tenancy, document: Any
) -> None:
    elsewhere = await tenancy.add_workspace(engines=GRAPH)
    other = await upload_text(client, elsewhere)
    async with unfinished(tenancy, document), tenancy.database.tenant(tenancy.tenant_id) as session:
        await change(session, other, **READY)
    assert [event.id for event in await told(tenancy, elsewhere)] == [1]


async def test_a_feed_goes_on_where_it_was_left_and_ends_when_told(
    tenancy: Tenancy, workspace_id: WorkspaceId, document: Any
) -> None:
    await set_state(tenancy, document, "lazy", **READY)
    for state in ("failed", "ready"):
        await set_state(tenancy, document, "graph", state=state)
    stopping = asyncio.Event()
    feed = EventFeed(tenancy.database, tenancy.tenant_id, workspace_id)
    seen: list[int] = []
    async for page in feed.follow(1, seconds=50, stopping=stopping):
        seen += [event.id for event in page]
        if not page:
            stopping.set()
    assert seen == [2]


async def test_a_feed_ends_with_its_workspace(tenancy: Tenancy, workspace_id: WorkspaceId, document: Any) -> None:
    await set_state(tenancy, document, "lazy", **READY)
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        for table in ("versions", "blobs"):  # originals are removed before
            await session.execute(text(f"DELETE FROM {table} WHERE workspace_id = :id"), {"id": workspace_id})
        await session.execute(text("DELETE FROM workspaces WHERE id = :id"), {"id": workspace_id})
    feed = EventFeed(tenancy.database, tenancy.tenant_id, workspace_id)
    assert [page async for page in feed.follow(0, seconds=50, stopping=asyncio.Event())] == []


async def test_events_are_forgotten_after_their_time(
    worker: Worker, owner_database: Database, tenancy: Tenancy, workspace_id: WorkspaceId, document: Any
) -> None:
    for engine in GRAPH:
        await set_state(tenancy, document, engine, **READY)
    await worker.retention.run()
    assert await types(tenancy, workspace_id) == ["ready"]
    async with owner_database.tenant(tenancy.tenant_id) as session:
        await session.execute(text("UPDATE events SET created_at = now() - interval '40 days'"))
    await worker.retention.run()
    assert await types(tenancy, workspace_id) == []
    await set_state(tenancy, document, "graph", state="failed")
    assert [event.id for event in await told(tenancy, workspace_id)] == [2]  # numbers are not given out again


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"headers": {"Last-Event-ID": "x"}}, "header.Last-Event-ID"),
        ({"headers": {"Last-Event-ID": "-1"}}, "header.Last-Event-ID"),
        ({"headers": {"Last-Event-ID": "9" * 30}}, "header.Last-Event-ID"),
        ({"params": {"after": "x"}}, "query.after"),
        ({"params": {"since": "1"}}, "query.since"),
    ],
)
async def test_a_place_that_cannot_be_is_refused(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, options: Any, field: str
) -> None:
    refused = await client.get(f"/v1/workspaces/{workspace_id}/events", **options)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field)


@pytest.mark.parametrize("where", ["header", "query"])
async def test_an_id_that_was_not_given_out_yet_is_refused(
    client: httpx.AsyncClient,
    owner_database: Database,
    tenancy: Tenancy,
    workspace_id: WorkspaceId,
    document: Any,
    where: str,
) -> None:
    """As after a backup was restored: a stream from there on would miss what comes before."""

    async def follow(after: int) -> Any:
        given: Any = {"headers": {"Last-Event-ID": str(after)}} if where == "header" else {"params": {"after": after}}
        return await client.get(f"/v1/workspaces/{workspace_id}/events", **given)

    found = await follow(1)
    assert (found.status_code, found.json()["code"], found.json()["last_event_id"]) == (422, "event_id_unknown", 0)
    for engine in GRAPH:
        await set_state(tenancy, document, engine, **READY)
    assert (await follow(2)).json()["last_event_id"] == 1
    async with owner_database.tenant(tenancy.tenant_id) as session:  # a forgotten event was given out all the same
        await session.execute(text("DELETE FROM events WHERE workspace_id = :id"), {"id": workspace_id})
    await EventFeed(tenancy.database, tenancy.tenant_id, workspace_id).check(1)
    assert (await follow(2)).json()["last_event_id"] == 1


async def test_a_stranger_finds_no_stream(stranger: httpx.AsyncClient, workspace_id: WorkspaceId) -> None:
    assert (await stranger.get(f"/v1/workspaces/{workspace_id}/events")).status_code == 404
