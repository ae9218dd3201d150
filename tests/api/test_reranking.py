"""Reranking over HTTP: what it changes, what it costs, and that nothing depends on it."""

import json
from typing import Any

import httpx
import pytest

from app.bootstrap import Container
from app.db.base import WorkspaceId
from app.db.session import Database
from app.settings import Settings
from tests.api.conftest import Index
from tests.api.documents import upload_text
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer

TEXTS = [f"The seal of gate {n} is green. Seal, seal and seal again: the seals of gate {n}." for n in range(6)]
WANTED = "Who makes the seal of the Tideline Sensor? Kestrel makes it."
QUESTION = "Who makes the seal"


@pytest.fixture
async def reranker(
    client: httpx.AsyncClient, tenancy: Tenancy, stub_llm: StubServer, settings: Settings, owner_database: Database,
    index: Index,
) -> tuple[WorkspaceId, str]:  # fmt: skip
    """A workspace of short documents with the graph, and the name of its reranker, which is the stub."""
    name = await register_stub(stub_llm, owner_database, settings, role="rerank")
    body = {"name": "Gates", "engines": ["lazy", "graph"], "rerank_model": name}
    workspace_id = WorkspaceId((await client.post("/v1/workspaces", json=body)).json()["id"])
    for number, text in enumerate([*TEXTS, WANTED]):
        await index(tenancy, await upload_text(client, workspace_id, text, title=f"Note {number}"))
    return workspace_id, name


async def ask(client: httpx.AsyncClient, workspace_id: WorkspaceId, **body: Any) -> Any:
    response = await client.post(f"/v1/workspaces/{workspace_id}/query", json={"query": QUESTION, **body})
    assert response.status_code == 200, response.text
    return response.json()


def ids(answer: Any) -> list[int]:
    return [passage["passage_id"] for passage in answer["evidence"]["passages"]]


@pytest.mark.parametrize("mode", ["baseline", "lazy-fast", "mix"])
async def test_the_order_is_the_reranker_s_and_the_old_rank_is_told(
    client: httpx.AsyncClient, reranker: tuple[WorkspaceId, str], mode: str
) -> None:
    workspace_id, name = reranker
    plain = await ask(client, workspace_id, mode=mode, rerank=False)
    every = await ask(client, workspace_id, mode=mode, rerank=False, top_k=50)
    answer = await ask(client, workspace_id, mode=mode)
    assert len(ids(answer)) == len(ids(plain))
    assert plain["usage"]["rerank_calls"] == 0
    assert answer["usage"]["rerank_calls"] == 1
    assert answer["usage"]["model_calls"] == 0
    assert answer["timings_ms"]["rerank"] > 0
    assert answer["details"]["rerank"] == {"model": name, "candidates": len(ids(every))}
    first = answer["evidence"]["passages"][0]
    assert first["text"] == WANTED
    assert answer["context"].index(WANTED) < answer["context"].index("gate")
    by_leg = {source["leg"]: source for source in first["sources"]}
    assert by_leg["rerank"]["rank"] == 1
    assert by_leg["retrieval"]["rank"] == ids(every).index(first["passage_id"]) + 1
    scores = [
        source["score"] for p in answer["evidence"]["passages"] for source in p["sources"] if source["leg"] == "rerank"
    ]
    assert scores == sorted(scores, reverse=True)


def page(*results: Any) -> str:
    return json.dumps({"results": [{"index": index, "relevance_score": score} for index, score in results]})


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"status": 500}, "model_unavailable"),
        ({"delay_ms": 60_000}, "too slow"),
        ({"page": "<html>"}, "model_unavailable"),
        ({"page": "{}"}, "model_nonsense"),
        ({"page": page(*((n, 0.5) for n in range(50)))}, "model_nonsense"),
        ({"page": page(*((0, 0.5) for n in range(7)))}, "model_nonsense"),
        ({"page": page((0, 0.5))}, "model_nonsense"),
        ({"page": page(*((n, float("nan")) for n in range(7)))}, "model_nonsense"),
    ],
)
async def test_whatever_goes_wrong_the_answer_is_the_one_without_it(
    client: httpx.AsyncClient, reranker: tuple[WorkspaceId, str], container: Container, stub_llm: StubServer,
    fault: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(container.reranking, "_timeout_seconds", 0.3 if "delay_ms" in fault else 30)
    workspace_id, name = reranker
    plain = await ask(client, workspace_id, mode="baseline", top_k=3, rerank=False)
    stub_llm.set_faults({"kind": "rerank", "name": "rerank", **fault})
    answer = await ask(client, workspace_id, mode="baseline", top_k=3)
    assert answer["evidence"] == plain["evidence"]
    assert answer["context"] == plain["context"]
    assert f"Not reranked: the reranker '{name}' failed ({reason})." in answer["notes"]
    again = await ask(client, workspace_id, mode="baseline", top_k=3, rerank=True)
    assert f"Not reranked: the reranker '{name}' has just failed." in again["notes"]
    assert again["usage"]["rerank_calls"] == 0


async def test_what_a_reranker_refuses_of_one_query_is_no_concern_of_the_next(
    client: httpx.AsyncClient, reranker: tuple[WorkspaceId, str], stub_llm: StubServer
) -> None:
    workspace_id, name = reranker
    stub_llm.set_faults({"kind": "rerank", "name": "rerank", "status": 400, "times": 1})
    answer = await ask(client, workspace_id, mode="baseline", top_k=3)
    assert f"Not reranked: the reranker '{name}' failed (model_rejected)." in answer["notes"]
    again = await ask(client, workspace_id, mode="baseline", top_k=3)
    assert again["usage"]["rerank_calls"] == 1


async def test_a_workspace_gets_and_loses_its_reranker(
    client: httpx.AsyncClient, reranker: tuple[WorkspaceId, str], tenancy: Tenancy
) -> None:
    workspace_id, name = reranker
    url = f"/v1/workspaces/{workspace_id}"
    assert (await client.get(url)).json()["rerank_model"] == name
    assert (await client.patch(url, json={"default_mode": "lazy"})).json()["rerank_model"] == name
    assert (await client.patch(url, json={"rerank_model": None})).json()["rerank_model"] is None
    refused = await client.post(f"{url}/query", json={"query": QUESTION, "rerank": True})
    assert (refused.status_code, refused.json()["code"]) == (409, "rerank_model_missing")
    assert (await ask(client, workspace_id))["usage"]["rerank_calls"] == 0
    for wrong in ("no-such", "offline-use"):
        unknown = await client.patch(url, json={"rerank_model": wrong})
        assert (unknown.status_code, unknown.json()["code"]) == (422, "unknown_model")
    assert (await client.patch(url, json={"rerank_model": name})).json()["rerank_model"] == name


async def test_what_reranking_took_is_in_the_ledger(
    client: httpx.AsyncClient, reranker: tuple[WorkspaceId, str]
) -> None:
    answer = await ask(client, reranker[0], mode="baseline")
    used = (await client.get("/v1/usage", params={"group_by": "purpose", "query_id": answer["id"]})).json()["items"]
    assert {item["key"]: item["calls"] for item in used} == {"embed_query": 1, "rerank": 1}
