"""The concept graph around a question, over HTTP."""

from typing import Any

import httpx
import pytest

from app.db.base import WorkspaceId
from app.retrieval.concepts import MAX_EDGES
from tests.api.conftest import Index
from tests.api.documents import upload_text
from tests.factories import Tenancy

TEXTS = {
    "Sensors": "Kestrel Polymers makes the seals of the Tideline Sensor in Porto.",
    "Kestrel": "Kestrel Polymers was founded in Porto by Ines Duarte.",
    "Harbor": "Jonas Weber of Harbor Works repairs the Tideline Sensor.",
}


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace()


@pytest.fixture
async def documents(client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index) -> list[Any]:
    made = [await upload_text(client, workspace_id, text, title=title) for title, text in TEXTS.items()]
    for document in made:
        await index(tenancy, document)
    return made


async def draw(client: httpx.AsyncClient, workspace_id: WorkspaceId, **options: Any) -> Any:
    query = {"query": "Who makes the seals of the Tideline Sensor?", **options}
    response = await client.get(f"/v1/workspaces/{workspace_id}/concepts/graph", params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def test_the_concepts_of_the_best_passages_and_what_they_share(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[Any]
) -> None:
    graph = await draw(client, workspace_id)
    nodes = {node["label"]: node for node in graph["nodes"]}
    assert {"Kestrel Polymers", "Porto", "Tideline Sensor"} <= set(nodes)
    assert nodes["Kestrel Polymers"]["passages"] == nodes["Tideline Sensor"]["passages"] == 2
    assert nodes["Tideline Sensor"]["in_question"] is True
    assert nodes["Kestrel Polymers"]["in_question"] is False
    ends = {frozenset((edge["source"], edge["target"])): edge["weight"] for edge in graph["edges"]}
    assert ends[frozenset((nodes["Kestrel Polymers"]["id"], nodes["Porto"]["id"]))] == 2
    assert ends[frozenset((nodes["Kestrel Polymers"]["id"], nodes["Tideline Sensor"]["id"]))] == 1
    for node in graph["nodes"]:
        assert node["degree"] == sum(node["id"] in pair for pair in ends)
        assert 0 < node["weight"] <= 1
        assert 0 <= node["betweenness"] <= 1
    assert sum(node["pagerank"] for node in graph["nodes"]) == pytest.approx(1, abs=1e-4)
    assert max(graph["nodes"], key=lambda node: node["pagerank"])["degree"] == max(n["degree"] for n in graph["nodes"])
    first = graph["seeds"][0]
    assert first["passage"]["title"] == "Sensors"
    assert nodes["Kestrel Polymers"]["id"] in first["nodes"]


async def test_it_is_as_small_as_asked_for(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[Any]
) -> None:
    graph = await draw(client, workspace_id, nodes=2)
    assert len(graph["nodes"]) == 2
    assert len(graph["edges"]) <= 1 <= MAX_EDGES


async def test_a_deleted_document_is_no_part_of_it(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[Any]
) -> None:
    await client.delete(documents[1]["links"]["self"])
    graph = await draw(client, workspace_id)
    assert "Kestrel" not in {seed["passage"]["title"] for seed in graph["seeds"]}
    # One passage is left that speaks of it, so it leads nowhere.
    assert "Kestrel Polymers" not in {node["label"] for node in graph["nodes"]}


async def test_strangers_see_nothing_of_it(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[Any]
) -> None:
    url = f"/v1/workspaces/{workspace_id}/concepts/graph"
    assert (await stranger.get(url, params={"query": "Tideline"})).status_code == 404
    refused: list[dict[str, str]] = [
        {},
        {"query": " "},
        {"query": "x" * 2001},
        {"query": "x", "nodes": "0"},
        {"query": "x", "nodes": "101"},
    ]
    for bad in refused:
        assert (await client.get(url, params=bad)).status_code == 422, bad


async def test_an_empty_workspace_has_an_empty_graph(client: httpx.AsyncClient, workspace_id: WorkspaceId) -> None:
    assert await draw(client, workspace_id) == {"seeds": [], "nodes": [], "edges": [], "edges_left_out": 0}
