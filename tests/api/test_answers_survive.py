"""An answer that was found, or paid for, is given though the database goes away before it has been booked and logged."""

import asyncio
from typing import Any

import httpx
import pytest

from app.db.base import WorkspaceId
from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.domain.usage.booking import NOT_RECORDED
from app.metrics import USAGE_NOT_RECORDED
from app.settings import Settings
from tests.api.conftest import Index
from tests.api.documents import until, upload_text
from tests.api.outages import database_away
from tests.cluster import Cluster
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer

TEXT = "Kestrel Polymers makes the seals of the Tideline Sensor in Porto."
QUESTION = "Who makes the seals of the Tideline Sensor?"


@pytest.fixture
async def workspace_id(
    client: httpx.AsyncClient, tenancy: Tenancy, stub_llm: StubServer, settings: Settings, owner_database: Database,
    index: Index,
) -> WorkspaceId:  # fmt: skip
    """Its chat model and its reranker are the stub."""
    chat = await register_stub(stub_llm, owner_database, settings)
    rerank = await register_stub(stub_llm, owner_database, settings, role="rerank")
    body = {"name": "Acme", "chat_model": chat, "rerank_model": rerank}
    made = await client.post("/v1/workspaces", json=body)
    workspace_id = WorkspaceId(made.json()["id"])
    await index(tenancy, await upload_text(client, workspace_id, TEXT, title="Supply"))
    return workspace_id


async def asked_while_away(
    client: httpx.AsyncClient,
    stub_llm: StubServer,
    kind: str,
    cluster: Cluster,
    urls: DatabaseUrls,
    path: str,
    body: Any,
) -> httpx.Response:
    """The answer to a request during whose call of a model, of this kind, the database goes away."""
    said = {"body": "Kestrel Polymers [1]."} if kind == "answer" else {}
    stub_llm.set_faults({"kind": kind, "name": "held", "delay_ms": 60_000, **said})
    asking = asyncio.create_task(client.post(path, json=body, timeout=60))

    async def is_asked() -> bool:
        assert not asking.done(), asking.result().text
        return bool((await asyncio.to_thread(stub_llm.stats))["in_flight"].get(kind))

    await until(is_asked)
    async with database_away(cluster, urls):
        await asyncio.to_thread(stub_llm.clear_faults, "held")
        return await asking


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_what_the_chat_model_wrote_is_given(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, stub_llm: StubServer, cluster: Cluster, urls: DatabaseUrls,
    is_streamed: bool,
) -> None:  # fmt: skip
    missed = USAGE_NOT_RECORDED.labels("query")._value.get()
    body = {"model": f"{workspace_id}:lazy", "messages": [{"role": "user", "content": QUESTION}], "stream": is_streamed}
    answer = await asked_while_away(client, stub_llm, "answer", cluster, urls, "/v1/openai/chat/completions", body)
    assert answer.status_code == 200, answer.text
    assert "Kestrel Polymers" in answer.text
    assert NOT_RECORDED in answer.text
    assert "The index could not be counted now." in answer.text
    assert not is_streamed or answer.text.endswith("data: [DONE]\n\n")
    assert USAGE_NOT_RECORDED.labels("query")._value.get() == missed + 1
    again = await client.post("/v1/openai/chat/completions", json={**body, "stream": False})
    assert again.json()["trellis"]["index"]["passages"] == 1
    assert NOT_RECORDED not in again.text


async def test_evidence_that_was_found_is_given(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, stub_llm: StubServer, cluster: Cluster, urls: DatabaseUrls
) -> None:
    path, body = f"/v1/workspaces/{workspace_id}/query", {"query": QUESTION, "mode": "baseline"}
    answer = await asked_while_away(client, stub_llm, "rerank", cluster, urls, path, body)
    assert answer.status_code == 200, answer.text
    assert [passage["text"] for passage in answer.json()["evidence"]["passages"]] == [TEXT]
    assert NOT_RECORDED in answer.json()["notes"]
