"""Why a document is in an answer or not, for every reason there is."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.db.base import WorkspaceId
from app.db.session import Database
from app.settings import Settings
from tests.api.conftest import Index
from tests.api.documents import DIRECT_MODES, set_state, upload_text
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer

WANTED = "Kestrel Polymers makes the seals of the Tideline Sensor in Porto."
OTHERS = [f"The seals of gate {n} come from Porto. Seals of gate {n} are green." for n in range(4)]
QUESTION = "Who makes the seals of the Tideline Sensor?"
FAR = "The canteen opens at noon."


@pytest.fixture
async def workspace_id(client: httpx.AsyncClient) -> WorkspaceId:
    body = {"name": "Explained", "engines": ["lazy", "graph"], "settings": {"metadata_fields": {"year": "number"}}}
    response = await client.post("/v1/workspaces", json=body)
    assert response.status_code == 201, response.text
    return WorkspaceId(response.json()["id"])


@pytest.fixture
async def documents(client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index) -> list[Any]:
    """The wanted one, others like it, and one far off."""
    made = [
        await upload_text(client, workspace_id, text, title=f"Note {n}", metadata={"year": 2020 + n})
        for n, text in enumerate([WANTED, *OTHERS, FAR])
    ]
    await index(tenancy, *made)
    return made


async def explain(client: httpx.AsyncClient, workspace_id: WorkspaceId, document: Any, **body: Any) -> Any:
    url = f"/v1/workspaces/{workspace_id}/explain"
    response = await client.post(url, json={"query": QUESTION, "document_id": document["id"], **body})
    assert response.status_code == 200, response.text
    return response.json()


def cuts(explained: Any) -> list[str | None]:
    return [passage["cut"] for passage in explained["passages"]]


async def test_what_is_in_the_context_is_cut_by_nothing(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[Any]
) -> None:
    for mode in DIRECT_MODES:
        told = await explain(client, workspace_id, documents[0], mode=mode)
        assert (cuts(told), told["untrusted"]) == ([None], None), mode
        assert 1 <= told["passages"][0]["rank"] <= told["candidates"]
        assert told["passages"][0]["found_by"], mode
        found = {source["leg"]: source["rank"] for source in told["passages"][0]["found_by"]}
        assert {leg["leg"]: leg["best_rank"] for leg in told["legs"] if leg["passages"]} == {
            name: rank for name, rank in found.items() if name in {leg["leg"] for leg in told["legs"]}
        }


async def test_each_reason_is_told(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, documents: list[Any]
) -> None:
    for mode in ("baseline", "mix"):
        below = await explain(client, workspace_id, documents[1], mode=mode, top_k=1)
        assert cuts(below) == ["below_k"]
        assert below["passages"][0]["rank"] > below["wanted"] == 1
        assert below["candidates"] >= below["passages"][0]["rank"]
        small = await explain(client, workspace_id, documents[4], mode=mode, max_total_tokens=100)
        assert cuts(small) == ["token_budget"]
        filtered = await explain(
            client, workspace_id, documents[0], mode=mode, filter={"metadata": {"year": {"gte": 2022}}}
        )
        assert cuts(filtered) == ["filtered"]
    # Only its words could have found it in a mode without vectors of it.
    walked = await explain(client, workspace_id, documents[0], mode="lazy")
    assert [leg["leg"] for leg in walked["legs"]] == ["bm25", "vectors", "names", "concepts"]
    await set_state(tenancy, documents[0], "lazy", state="failed")
    # Another question: what was set here moved no corpus version, so answers are remembered.
    untrusted = await explain(client, workspace_id, documents[0], mode="baseline", query="Whose seals has the sensor?")
    assert (cuts(untrusted), untrusted["untrusted"]) == (["not_trusted"], "not_ready")
    assert untrusted["passages"][0]["rank"] is None
    assert cuts(await explain(client, workspace_id, documents[0], mode="mix")) == [None]


async def test_a_reranker_is_named_as_the_reason(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[Any], stub_llm: StubServer,
    settings: Settings, owner_database: Database,
) -> None:  # fmt: skip
    name = await register_stub(stub_llm, owner_database, settings, role="rerank")
    await client.patch(f"/v1/workspaces/{workspace_id}", json={"rerank_model": name})
    told = await explain(client, workspace_id, documents[1], mode="baseline", top_k=1)
    assert cuts(told) == ["rerank"]
    assert cuts(await explain(client, workspace_id, documents[1], mode="baseline", top_k=1, rerank=False)) == [
        "below_k"
    ]


async def test_entities_of_the_document_are_told_in_graph_modes(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[Any]
) -> None:
    told = await explain(client, workspace_id, documents[0], mode="local")
    assert ["Tideline Sensor"] in [entity["names"] for entity in told["entities"]]
    assert all(entity["is_in_context"] for entity in told["entities"])
    bare = await explain(client, workspace_id, documents[0], mode="local", max_total_tokens=100)
    assert not all(entity["is_in_context"] for entity in bare["entities"] + bare["relations"])


async def test_strangers_and_unknown_documents_are_not_explained(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[Any]
) -> None:
    url = f"/v1/workspaces/{workspace_id}/explain"
    unknown = await client.post(url, json={"query": QUESTION, "document_id": str(uuid4())})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "document_not_found")
    other = await stranger.post(url, json={"query": QUESTION, "document_id": documents[0]["id"]})
    assert (other.status_code, other.json()["code"]) == (404, "workspace_not_found")
