"""Neither a model that trickles nor a client that does not read keeps the model, or a connection, from others."""

import asyncio
import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import text

from app.api.stopping import Stopping
from app.bootstrap import Container
from app.db.base import WorkspaceId
from app.db.session import Database
from app.settings import Settings
from tests.api.conftest import Index
from tests.api.documents import until, upload_text
from tests.api.serving import serving
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer

TEXT = "Kestrel Polymers makes the seals of the Tideline Sensor in Porto."
MESSAGES = [{"role": "user", "content": "Who makes the seals of the Tideline Sensor?"}]
PATH = "/v1/openai/chat/completions"
LONG = "word " * 60_000


@pytest.fixture
async def model(
    client: httpx.AsyncClient, tenancy: Tenancy, stub_llm: StubServer, settings: Settings, owner_database: Database,
    index: Index,
) -> str:  # fmt: skip
    """A workspace whose chat model, the stub, answers one call at a time."""
    chat = await register_stub(stub_llm, owner_database, settings, max_concurrency=1)
    made = await client.post("/v1/workspaces", json={"name": "Acme", "chat_model": chat})
    workspace_id = WorkspaceId(made.json()["id"])
    await index(tenancy, await upload_text(client, workspace_id, TEXT, title="Supply"))
    return f"{workspace_id}:lazy"


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_an_answer_has_a_time_limit_however_steadily_it_goes_on(
    client: httpx.AsyncClient, container: Container, model: str, stub_llm: StubServer, is_streamed: bool
) -> None:
    hasty = replace(container, settings=container.settings.model_copy(update={"answer_timeout_seconds": 1.0}))
    fault = {"piece_ms": 100} if is_streamed else {"delay_ms": 60_000}
    stub_llm.set_faults({"kind": "answer", "body": LONG, **fault})
    body = {"model": model, "messages": MESSAGES, "stream": is_streamed}
    async with serving(hasty) as url, httpx.AsyncClient(headers=client.headers, base_url=url, timeout=60) as plain:
        answer = await plain.post(PATH, json=body)
        if is_streamed:
            frames = answer.text.strip().split("\n\n")
            assert "word" in frames[1]
            error = json.loads(frames[-1].removeprefix("data: "))["error"]
        else:
            assert answer.status_code == 504
            error = answer.json()["error"]
        assert (error["code"], error["type"]) == ("answer_timeout", "server_error")
        # The one slot is free again.
        assert (await plain.post(PATH, json={**body, "stream": False})).status_code == 200


async def test_a_client_that_does_not_read_holds_neither_the_model_nor_a_connection(
    client: httpx.AsyncClient, container: Container, model: str, stub_llm: StubServer
) -> None:
    stub_llm.set_faults({"kind": "answer", "body": LONG})
    body: dict[str, Any] = {"model": model, "messages": MESSAGES}
    async with serving(container, send_buffer=4096) as url:
        parts = urlsplit(url)
        # Of what comes the client takes a few bytes only.
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1024)
        content = json.dumps({**body, "stream": True}).encode()
        head = f"POST {PATH} HTTP/1.1\r\nHost: trellis\r\nAuthorization: {client.headers['Authorization']}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        writer.write(head.encode() + content)
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        async with httpx.AsyncClient(headers=client.headers, base_url=url, timeout=60) as plain:
            assert (await plain.post(PATH, json=body)).status_code == 200

        async def is_idle() -> bool:
            return bool(container.database.engine.pool.checkedout() == 0)  # type: ignore[attr-defined]

        await until(is_idle)
        writer.close()


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_server_that_can_wait_no_longer_says_so_and_books_what_was_written(
    client: httpx.AsyncClient, tenancy: Tenancy, model: str, stub_llm: StubServer, is_streamed: bool
) -> None:
    fault = {"piece_ms": 100} if is_streamed else {"delay_ms": 60_000}
    stub_llm.set_faults({"kind": "answer", "body": LONG, **fault})
    body = {"model": model, "messages": MESSAGES, "stream": is_streamed}
    before = stub_llm.stats()["calls"].get("answer", 0)
    asking = asyncio.create_task(client.post(PATH, json=body, timeout=60))

    async def is_asked() -> bool:
        return bool((await asyncio.to_thread(stub_llm.stats))["calls"].get("answer", 0) > before)

    await until(is_asked)
    await asyncio.sleep(0.5)
    stopping: Stopping = client._transport.app.state.stopping  # type: ignore[attr-defined]
    stopping.overdue.set()
    answer = await asking
    stopping.overdue.clear()
    if is_streamed:
        assert '"code":"server_stopping"' in answer.text.strip().split("\n\n")[-1]
    else:
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "server_stopping")
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        booked = (await session.execute(text("SELECT purpose FROM usage_events"))).scalars().all()
    assert "answer" in booked
