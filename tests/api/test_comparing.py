"""What a comparison or an explanation asks for once, how long it takes, and that it ends with its client."""

import asyncio
import re
from typing import Any

import httpx
import pytest

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
QUESTION = "Who makes the seals of the Tideline Sensor?"
MODES = ["local", "mix", "hybrid"]


@pytest.fixture
async def document(
    client: httpx.AsyncClient, tenancy: Tenancy, stub_llm: StubServer, settings: Settings, owner_database: Database,
    index: Index,
) -> Any:  # fmt: skip
    """The one document of a workspace with the graph, whose models are the stub."""
    names = {"chat_model": await register_stub(stub_llm, owner_database, settings)}
    names["embedding_model"] = await register_stub(stub_llm, owner_database, settings, role="embedding", dimension=384)
    made = await client.post("/v1/workspaces", json={"name": "Acme", "engines": ["lazy", "graph"], **names})
    document = await upload_text(client, WorkspaceId(made.json()["id"]), TEXT, title="Supply")
    await index(tenancy, document)
    stub_llm.reset()
    return document


def paths(document: Any) -> dict[str, tuple[str, Any]]:
    """Where the same question is asked in several ways, and how."""
    place, asked = f"/v1/workspaces/{document['workspace_id']}", {"query": QUESTION}
    return {
        "query": (f"{place}/query", {**asked, "mode": "lazy"}),
        "compare": (f"{place}/queries/compare", {**asked, "modes": MODES}),
        "explain": (f"{place}/explain", {**asked, "document_id": document["id"], "mode": "mix"}),
    }


@pytest.mark.parametrize("route", ["compare", "explain"])
async def test_models_are_asked_once(
    client: httpx.AsyncClient, document: Any, stub_llm: StubServer, route: str
) -> None:
    path, body = paths(document)[route]
    answer = await client.post(path, json={**body, "keywords": "llm", "expand": "llm"})
    assert answer.status_code == 200, answer.text
    calls = stub_llm.stats()["calls"]
    assert (calls["keywords"], calls["answer"]) == (1, 1)
    if route == "compare":
        used = [result["answer"]["usage"]["model_calls"] for result in answer.json()["results"]]
        assert used == [2, 0, 0]


async def test_a_comparison_has_one_time_limit(client: httpx.AsyncClient, document: Any, stub_llm: StubServer) -> None:
    stub_llm.set_faults({"kind": "embed", "name": "slow", "delay_ms": 60_000, "times": 9})
    path, body = paths(document)["compare"]
    answer = await client.post(path, json={**body, "timeout_ms": 30})
    problems = [result["problem"] for result in answer.json()["results"]]
    assert [problem["code"] for problem in problems] == ["query_deadline"] * 3
    told = [re.fullmatch(r"Nothing was found within (\d+) ms\.", problem["detail"]) for problem in problems]
    parts = [int(found[1]) for found in told if found]
    assert len(parts) == 3
    assert parts[0] <= 10
    assert sum(parts) <= 30


async def test_an_explanation_says_what_was_not_done_in_time(
    client: httpx.AsyncClient, document: Any, stub_llm: StubServer
) -> None:
    stub_llm.set_faults({"kind": "embed", "name": "slow", "delay_ms": 60_000, "times": 9})
    path, body = paths(document)["explain"]
    told = await client.post(path, json={**body, "mode": "baseline", "timeout_ms": 3000})
    assert told.status_code == 200, told.text
    assert told.json()["missing_legs"] == ["vectors"]
    assert told.json()["passages"][0]["cut"] is None
    late = await client.post(path, json={**body, "timeout_ms": 10})
    assert (late.status_code, late.json()["code"]) == (504, "query_deadline")


@pytest.mark.parametrize("route", ["query", "compare", "explain"])
async def test_the_work_ends_when_the_client_goes(
    client: httpx.AsyncClient, container: Container, document: Any, stub_llm: StubServer, route: str
) -> None:
    stub_llm.set_faults({"kind": "embed", "name": "slow", "delay_ms": 60_000, "times": 9})
    path, body = paths(document)[route]

    async def calls() -> int:
        return int((await asyncio.to_thread(stub_llm.stats))["in_flight"].get("embed", 0))

    async def is_asked() -> bool:
        return await calls() == 1

    async def is_given_up() -> bool:
        return await calls() == 0

    async with serving(container) as url, httpx.AsyncClient(headers=client.headers, base_url=url) as plain:
        asking = asyncio.create_task(plain.post(path, json=body, timeout=120))
        await until(is_asked)
        asking.cancel()
        await asyncio.wait([asking])
        await until(is_given_up)
