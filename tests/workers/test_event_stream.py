"""The stream of events over a real connection, fed by a real worker, and its end when the server is stopped."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.live import LiveStack

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]


@pytest.fixture
async def client(live_stack: LiveStack) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {await live_stack.new_key()}"}
    async with httpx.AsyncClient(base_url=live_stack.api_url, headers=headers, timeout=60) as client:
        yield client


async def workspace(client: httpx.AsyncClient, *engines: str) -> str:
    response = await client.post("/v1/workspaces", json={"name": "w", "engines": list(engines)})
    found: str = response.json()["id"]
    return f"/v1/workspaces/{found}"


async def upload(client: httpx.AsyncClient, here: str, text: str) -> Any:
    response = await client.post(f"{here}/documents", json={"title": "t", "text": text})
    return response.json()["documents"][0]


async def events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """What a stream tells; every field but `data` is checked against it."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        if "data" in fields:
            data: dict[str, Any] = json.loads(fields["data"])
            assert (fields["id"], fields["event"]) == (str(data["id"]), data["type"])
            yield data
        fields = {}


async def test_a_stream_tells_what_becomes_of_documents_and_can_be_taken_up_again(client: httpx.AsyncClient) -> None:
    here = await workspace(client, "lazy", "graph")
    async with client.stream("GET", f"{here}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        stream = events(response)
        good = await upload(client, here, "Captain Ada Moreau left Port Lindau.")
        first = await anext(stream)
        bad = await upload(client, here, "   ")
        second = await anext(stream)
    assert (first["type"], first["document_id"]) == ("document.ready", good["id"])
    assert (second["type"], second["document_id"]) == ("document.failed", bad["id"])
    assert set(first) == {"id", "type", "workspace_id", "document_id", "version_id", "created_at"}
    await client.delete(bad["links"]["self"])
    async with client.stream("GET", f"{here}/events", headers={"Last-Event-ID": str(first["id"])}) as response:
        stream = events(response)
        assert await anext(stream) == second
        assert (await anext(stream))["type"] == "document.deleted"


async def test_idle_streams_hold_no_connections_and_end_when_the_server_stops(
    live_stack: LiveStack, client: httpx.AsyncClient
) -> None:
    here = await workspace(client, "lazy")
    ended: list[bool] = []
    opened = asyncio.Semaphore(0)

    async def follow() -> None:
        async with client.stream("GET", f"{here}/events") as response:
            opened.release()
            async for _ in response.aiter_bytes():
                pass
        ended.append(True)  # in order: a broken connection would have raised

    streams = [asyncio.create_task(follow()) for _ in range(20)]  # the pool has 5 connections
    for _ in streams:
        await opened.acquire()
    assert (await client.get("/v1/me")).status_code == 200
    await asyncio.to_thread(live_stack.child("api").stop)
    await asyncio.gather(*streams)
    assert len(ended) == 20
