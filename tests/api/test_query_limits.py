"""What a query took, and what it leaves out when its time is over."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from app.bootstrap import Container
from app.db.base import WorkspaceId
from app.db.session import Database
from app.metrics import exposition
from app.settings import Settings
from tests.api.conftest import Index
from tests.api.documents import until, upload_text
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer

TEXT = "Kestrel Polymers makes the seals of the Tideline Sensor in Porto. Jonas Weber of Harbor Works replaced it in Varna."
QUESTION = "Who makes the seals of the Tideline Sensor?"


@pytest.fixture
async def url(
    client: httpx.AsyncClient, tenancy: Tenancy, stub_llm: StubServer, settings: Settings, owner_database: Database,
    index: Index,
) -> str:  # fmt: skip
    """A workspace with the graph whose embedding model is the stub, with one document."""
    model = await register_stub(stub_llm, owner_database, settings, role="embedding", dimension=384)
    body = {"name": "Timed", "engines": ["lazy", "graph"], "embedding_model": model}
    workspace_id = WorkspaceId((await client.post("/v1/workspaces", json=body)).json()["id"])
    await index(tenancy, await upload_text(client, workspace_id, TEXT, title="Supply"))
    return f"/v1/workspaces/{workspace_id}/query"


async def ask(client: httpx.AsyncClient, url: str, **body: Any) -> Any:
    response = await client.post(url, json={"query": QUESTION, **body})
    assert response.status_code == 200, response.text
    return response.json()


def series(name: str, **labels: str) -> float:
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    lines = [line for line in exposition({}).decode().splitlines() if line.startswith(name)]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if all(part in line for part in wanted))


@pytest.mark.parametrize(
    ("mode", "missing"), [("baseline", ["vectors"]), ("lazy", ["vectors"]), ("mix", ["vectors", "graph"])]
)
async def test_a_model_that_is_too_slow_costs_its_legs_only(
    client: httpx.AsyncClient, url: str, stub_llm: StubServer, mode: str, missing: list[str]
) -> None:
    stub_llm.set_faults({"kind": "embed", "name": "slow", "delay_ms": 60_000})
    left_out = series("trellis_query_legs_missing_total", mode=mode)
    answer = await ask(client, url, mode=mode, timeout_ms=3000)
    assert answer["missing_legs"] == missing
    assert [passage["text"] for passage in answer["evidence"]["passages"]] == [TEXT]
    assert f"Not searched in time: {', '.join(missing)}." in answer["notes"]
    assert series("trellis_query_legs_missing_total", mode=mode) == left_out + len(missing)
    stub_llm.clear_faults("slow")
    whole = await ask(client, url, mode=mode, timeout_ms=600_000)
    assert whole["missing_legs"] == []
    assert not whole["details"].get("cache", {}).get("hit")
    assert "vectors" in {source["leg"] for p in whole["evidence"]["passages"] for source in p["sources"]}
    without = await ask(client, url, mode=mode)
    assert without["context"] == whole["context"]


@pytest.mark.parametrize("mode", ["baseline", "lazy", "mix"])
async def test_no_leg_in_time_is_no_answer(
    client: httpx.AsyncClient, url: str, stub_llm: StubServer, mode: str
) -> None:
    stub_llm.set_faults({"kind": "embed", "name": "slow", "delay_ms": 60_000})
    response = await client.post(url, json={"query": QUESTION, "mode": mode, "timeout_ms": 10})
    assert (response.status_code, response.json()["code"]) == (504, "query_deadline"), response.text
    assert response.json()["timeout_ms"] == 10


@pytest.mark.parametrize("limit", [0, 9, 600_001, "soon"])
async def test_a_limit_that_makes_no_sense_is_refused(client: httpx.AsyncClient, url: str, limit: Any) -> None:
    response = await client.post(url, json={"query": QUESTION, "timeout_ms": limit})
    assert (response.status_code, response.json()["code"]) == (422, "validation_error")


async def test_statements_are_told_and_counted(client: httpx.AsyncClient, url: str) -> None:
    for mode in ("baseline", "mix"):
        before = series("trellis_query_statements_total", mode=mode), series("trellis_query_seconds_count", mode=mode)
        first, second = await ask(client, url, mode=mode), await ask(client, url, mode=mode)
        told = [answer["usage"]["sql_statements"] for answer in (first, second)]
        assert told[0] > 5, json.dumps(first["usage"])
        assert mode == "mix" or told[1] < told[0]  # the lazy engine remembers
        assert series("trellis_query_statements_total", mode=mode) == before[0] + sum(told)
        assert series("trellis_query_seconds_count", mode=mode) == before[1] + 2
    assert series("trellis_query_stage_seconds_count", mode="baseline", stage="vectors") >= 1
    assert series("trellis_query_model_calls_total", mode="baseline", kind="embedding") >= 1
    assert series("trellis_query_tokens_total", mode="baseline", direction="in") > 0


@pytest.mark.parametrize("mode", ["lazy", "mix"])
async def test_no_connection_is_held_while_a_model_is_asked(
    client: httpx.AsyncClient, url: str, stub_llm: StubServer, container: Container, mode: str
) -> None:
    stub_llm.set_faults({"kind": "embed", "name": "held", "delay_ms": 60_000})
    asking = asyncio.create_task(ask(client, url, mode=mode, expand="cooccurrence"))

    async def is_asked() -> bool:
        return bool((await asyncio.to_thread(stub_llm.stats))["in_flight"].get("embed"))

    await until(is_asked)
    assert container.database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    await asyncio.to_thread(stub_llm.clear_faults, "held")
    assert (await asking)["citations"]
