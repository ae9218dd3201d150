"""Questions over HTTP, answered by the real engines with the offline models."""

from typing import Any

import asyncpg
import httpx
import pytest
from sqlalchemy import make_url, select

from app.db.base import WorkspaceId
from app.db.models import UsageEvent
from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.domain.tenants.records import Role
from app.retrieval.contract import GRAPH_MODES, MODES
from app.settings import Settings
from tests.api.conftest import Connect, Index
from tests.api.documents import DIRECT_MODES, upload_text
from tests.cluster import Cluster
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer

TEXT = """Kestrel Polymers makes the seals of the Tideline Sensor in Porto. Marta Oliveira of Harbor Works ordered them in 2023.

Jonas Weber replaced the Tideline Sensor in the port of Varna. He works for Harbor Works.
"""
QUESTION = "Who makes the seals of the Tideline Sensor?"


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=("lazy", "graph"))


@pytest.fixture
def url(workspace_id: WorkspaceId) -> str:
    return f"/v1/workspaces/{workspace_id}/query"


@pytest.fixture
async def document(client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index) -> Any:
    made = await upload_text(client, workspace_id, TEXT, title="Supply")
    await index(tenancy, made)
    return made


async def ask(client: httpx.AsyncClient, url: str, **body: Any) -> Any:
    response = await client.post(url, json={"query": QUESTION, **body})
    assert response.status_code == 200, response.text
    return response.json()


async def test_every_mode_brings_cited_evidence_without_a_model_call(
    client: httpx.AsyncClient, url: str, document: Any
) -> None:
    for mode in DIRECT_MODES:
        answer = await ask(client, url, mode=mode)
        assert answer["mode"] == mode
        assert "Kestrel Polymers" in answer["context"], mode
        assert answer["usage"]["model_calls"] == 0
        assert answer["timings_ms"]["total"] > 0
        first = answer["citations"][0]
        assert (first["document_id"], first["version_id"]) == (document["id"], document["version"]["id"])
        [cited] = [found for found in answer["evidence"]["passages"] if found["passage_id"] == first["passage_id"]]
        assert cited["text"] == TEXT[first["char_start"] : first["char_end"]]
        assert f"[1] Supply\n{cited['text']}" in answer["context"]
        assert (await client.get(first["link"])).json()["passage"]["text"] == cited["text"]


async def test_graph_modes_bring_entities_and_relations(client: httpx.AsyncClient, url: str, document: Any) -> None:
    answer = await ask(client, url, mode="local")
    assert "Tideline Sensor" in [entity["name"] for entity in answer["evidence"]["entities"]]
    assert "## Entities" in answer["context"]
    assert all(entity["document_ids"] == [document["id"]] for entity in answer["evidence"]["entities"])


async def test_the_default_mode_is_the_workspace_s(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, url: str, document: Any
) -> None:
    assert (await ask(client, url))["mode"] == "mix"
    await client.patch(f"/v1/workspaces/{workspace_id}", json={"default_mode": "baseline"})
    assert (await ask(client, url))["mode"] == "baseline"


async def test_offline_models_are_named(client: httpx.AsyncClient, url: str, document: Any) -> None:
    lazy, graph = await ask(client, url, mode="lazy"), await ask(client, url, mode="mix")
    assert any("offline-use" in note for note in lazy["notes"])
    assert any("offline-extractor" in note for note in graph["notes"])


async def test_the_ledger_names_what_a_query_used(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, url: str, document: Any
) -> None:
    answer = await ask(client, url, mode="baseline")
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        rows = await session.scalars(
            select(UsageEvent).where(UsageEvent.workspace_id == workspace_id, UsageEvent.document_id.is_(None))
        )
        used = {row.purpose: (row.calls, row.tokens_in) for row in rows}
    assert used == {"embed_query": (answer["usage"]["embedding_calls"], answer["usage"]["tokens_in"])}


async def test_one_model_call_when_the_caller_wants_one(client: httpx.AsyncClient, url: str, document: Any) -> None:
    assert (await ask(client, url, mode="local", keywords="llm"))["usage"]["model_calls"] == 1


async def test_given_keywords_steer_the_graph(client: httpx.AsyncClient, url: str, document: Any) -> None:
    answer = await ask(client, url, mode="local", keywords={"low": ["Jonas Weber"]})
    assert "Jonas Weber" in [entity["name"] for entity in answer["evidence"]["entities"]]


async def test_no_question_gets_a_silent_nothing(client: httpx.AsyncClient, url: str, document: Any) -> None:
    for query in ("?", "hi", "的", "seal " * 600, "Tideline\nSensor", "🙂", "'; DROP TABLE x --"):
        for mode in ("mix", "lazy", "baseline"):
            answer = await ask(client, url, query=query, mode=mode)
            said = [note for note in answer["notes"] if "offline" not in note]
            assert answer["evidence"]["passages"] or said, (query, mode)


async def test_a_workspace_without_ready_documents_says_so(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, url: str
) -> None:
    await upload_text(client, workspace_id, TEXT)
    answer = await ask(client, url, mode="lazy")
    assert (answer["context"], answer["citations"]) == ("", [])
    assert any("No document of this workspace is ready" in note for note in answer["notes"])


async def test_a_small_budget_says_what_it_cut(client: httpx.AsyncClient, url: str, document: Any) -> None:
    answer = await ask(client, url, mode="mix", max_total_tokens=100)
    assert answer["context_tokens"] <= 100
    assert any("Left out of the context" in note for note in answer["notes"])


@pytest.mark.parametrize("mode", ["mix", "naive", "lazy"])
async def test_evidence_is_there_whether_it_fits_into_the_context_or_not(
    client: httpx.AsyncClient, url: str, document: Any, mode: str
) -> None:
    ample = await ask(client, url, mode=mode)
    small = await ask(client, url, mode=mode, max_total_tokens=100)
    assert ample["evidence"]["passages"]
    assert small["evidence"]["passages"] == ample["evidence"]["passages"]
    assert not any("matches" in note for note in small["notes"])


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"mode": "best"}, 422, "unknown_mode"),
        ({"mode": ""}, 422, "unknown_mode"),
        ({"query": ""}, 422, "query_required"),
        ({"query": " \n"}, 422, "query_required"),
        ({"query": "a\x00b"}, 422, "validation_error"),
        ({"query": "x" * 10_001}, 422, "validation_error"),
        ({"top_k": 0}, 422, "validation_error"),
        ({"top_k": 101}, 422, "validation_error"),
        ({"max_total_tokens": 10**9}, 422, "validation_error"),
        ({"modes": "mix"}, 422, "validation_error"),
        ({"keywords": "rules"}, 422, "validation_error"),
        ({"keywords": {"mid": []}}, 422, "validation_error"),
        ({"keywords": "llm", "mode": "lazy"}, 422, "keywords_not_used"),
        ({"relevance_budget": 8, "mode": "mix"}, 422, "budgets_not_used"),
        ({"preset": "showcase", "mode": "baseline"}, 422, "budgets_not_used"),
        ({"preset": "cheap", "mode": "lazy"}, 422, "validation_error"),
        ({"relevance_budget": 129, "mode": "lazy"}, 422, "validation_error"),
        ({"seed_k": 0, "mode": "lazy"}, 422, "validation_error"),
        ({"max_context_chunks": 101, "mode": "lazy"}, 422, "validation_error"),
        ({"max_concepts_per_chunk": 41, "mode": "lazy"}, 422, "validation_error"),
    ],
)
async def test_a_question_that_cannot_be_answered_is_refused(
    client: httpx.AsyncClient, url: str, body: dict[str, Any], status: int, code: str
) -> None:
    response = await client.post(url, json={"query": QUESTION, **body})
    assert (response.status_code, response.json()["code"]) == (status, code), response.text


async def test_budgets_of_a_lazy_mode_are_those_of_the_request(
    client: httpx.AsyncClient, url: str, document: Any
) -> None:
    told = (await ask(client, url, mode="lazy-wide", seed_k=3, max_context_chunks=1, preset="showcase"))["details"]
    limits = {name: budget["limit"] for name, budget in told["budgets"].items()}
    assert limits == {
        "relevance_budget": 64, "seed_k": 3, "max_context_chunks": 1, "max_concepts_per_chunk": 32,
    }  # fmt: skip
    assert len(told["passages"]) == 1
    assert told["llm_index_calls"] == 0


@pytest.mark.parametrize("mode", ["lazy", "baseline"])
async def test_a_remembered_answer_is_never_stale(
    client: httpx.AsyncClient,
    tenancy: Tenancy,
    workspace_id: WorkspaceId,
    url: str,
    document: Any,
    index: Index,
    mode: str,
) -> None:
    async def titles() -> tuple[bool, set[str]]:
        answer = await ask(client, url, mode=mode)
        return answer["details"]["cache"]["hit"], {found["title"] for found in answer["evidence"]["passages"]}

    assert await titles() == (False, {"Supply"})
    assert await titles() == (True, {"Supply"})
    assert (await ask(client, url, mode=mode))["usage"]["embedding_calls"] == 0
    added = await upload_text(client, workspace_id, "The seals of the Tideline Sensor came from Lagos.", title="Seals")
    await index(tenancy, added)
    assert await titles() == (False, {"Supply", "Seals"})
    assert (await client.patch(added["links"]["self"], json={"title": "Seals of 2024"})).status_code == 200
    assert await titles() == (False, {"Supply", "Seals of 2024"})
    await client.delete(document["links"]["self"])
    assert await titles() == (False, {"Seals of 2024"})


async def test_an_unknown_mode_is_answered_with_the_modes(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post(url, json={"query": QUESTION, "mode": "best"})
    assert response.json()["modes"] == [*MODES, "auto"]


async def test_a_graph_mode_without_the_graph_is_a_conflict(client: httpx.AsyncClient, tenancy: Tenancy) -> None:
    url = f"/v1/workspaces/{await tenancy.add_workspace()}/query"
    for mode in GRAPH_MODES:
        response = await client.post(url, json={"query": QUESTION, "mode": mode})
        assert (response.status_code, response.json()["code"]) == (409, "engine_off")


async def test_readers_may_ask_and_strangers_may_not(
    connect: Connect, stranger: httpx.AsyncClient, tenancy: Tenancy, url: str, document: Any
) -> None:
    reader = await connect(tenancy, Role.READER)
    assert (await ask(reader, url))["citations"]
    assert (await stranger.post(url, json={"query": QUESTION})).status_code == 404


async def test_a_deleted_document_is_used_by_no_mode(client: httpx.AsyncClient, url: str, document: Any) -> None:
    await client.delete(document["links"]["self"])
    for mode in DIRECT_MODES:
        answer = await ask(client, url, mode=mode)
        assert answer["evidence"] == {"passages": [], "entities": [], "relations": []}
        assert "Kestrel" not in answer["context"]


async def test_a_marker_of_one_workspace_is_never_seen_from_another(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index
) -> None:
    places: list[tuple[WorkspaceId, str, str]] = []
    for marker in ("Zarquon", "Vermithrax"):
        workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
        made = await upload_text(client, workspace_id, f"Director {marker} leads the Quorum Institute in Oslo.")
        await index(tenancy, made)
        places.append((workspace_id, marker, made["id"]))
    for (workspace_id, own, document_id), (_, other, _) in (places, places[::-1]):
        here = f"/v1/workspaces/{workspace_id}"
        for mode in DIRECT_MODES:
            response = await client.post(
                f"{here}/query", json={"query": "Who leads the Quorum Institute?", "mode": mode, "top_k": 50}
            )
            assert own in response.text, mode
            assert other not in response.text, mode
            assert {citation["document_id"] for citation in response.json()["citations"]} == {document_id}
        for listed in (await client.get(f"{here}/entities"), await client.get(f"{here}/documents")):
            assert other not in listed.text
        assert own in (await client.get(f"{here}/entities")).text


async def test_the_first_question_after_the_database_cut_its_connections_is_answered(
    client: httpx.AsyncClient, cluster: Cluster, urls: DatabaseUrls, url: str, document: Any
) -> None:
    for mode in ("mix", "lazy"):
        await ask(client, url, mode=mode)
        administrator = await asyncpg.connect(cluster.admin_url)
        cut = await administrator.fetch(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1",
            make_url(urls.app).database,
        )
        await administrator.close()
        assert cut
        assert (await ask(client, url, mode=mode))["citations"]


async def test_a_provider_that_refuses_is_not_blamed_on_the_caller(
    client: httpx.AsyncClient, tenancy: Tenancy, owner_database: Database, settings: Settings, stub_llm: StubServer
) -> None:
    name = await register_stub(stub_llm, owner_database, settings)
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"), chat=name)
    stub_llm.set_faults({"kind": "keywords", "status": 401, "times": 9})
    body = {"query": QUESTION, "mode": "local", "keywords": "llm"}
    response = await client.post(f"/v1/workspaces/{workspace_id}/query", json=body)
    assert (response.status_code, response.json()["code"]) == (502, "model_rejected")
