"""Entities over HTTP."""

import asyncio
from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest

from app.bootstrap import Container, Worker
from app.db.base import TenantId, WorkspaceId
from app.domain.entities import changes
from app.domain.tenants.records import Role
from app.jobs import PurgeDocument
from app.retrieval.contract import GRAPH_MODES, WorkspaceRef
from tests.api.conftest import Connect, Index
from tests.api.documents import upload_text
from tests.factories import Tenancy
from workers.task import attempt

TEXT = """Elena Petrova leads the research group of Harbor Works in Hamburg. In 2022 Helena Petrova received the Bluewater Prize.

Jonas Weber hired Elena Petrova in 2016. Professor Ingrid Solberg shared the Bluewater Prize with Helena Petrova.
"""


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=("lazy", "graph"))


@pytest.fixture
def url(workspace_id: WorkspaceId) -> str:
    return f"/v1/workspaces/{workspace_id}/entities"


@pytest.fixture
async def document(client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index) -> Any:
    made = await upload_text(client, workspace_id, TEXT)
    await index(tenancy, made)
    return made


async def names(client: httpx.AsyncClient, url: str, **params: Any) -> list[str]:
    response = await client.get(url, params=params)
    assert response.status_code == 200, response.text
    return [item["name"] for item in response.json()["items"]]


async def test_entities_are_listed_by_name_page_by_page(client: httpx.AsyncClient, url: str, document: Any) -> None:
    everything = await names(client, url, limit=200)
    assert {"Elena Petrova", "Helena Petrova", "Harbor Works"} <= set(everything)
    assert everything == sorted(everything)
    listed: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = (await client.get(url, params=params)).json()
        listed += [item["name"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    assert listed == everything
    assert await names(client, url, prefix="elena") == ["Elena Petrova"]
    assert await names(client, url, prefix="%") == []


async def test_the_link_of_an_entity_leads_to_it(client: httpx.AsyncClient, url: str, document: Any) -> None:
    for item in (await client.get(url, params={"limit": 200})).json()["items"]:
        found = (await client.get(item["link"])).json()
        assert (found["name"], len(found["relations"])) == (item["name"], item["degree"])
        assert found["chunks"][0]["version_id"] == document["version"]["id"]


async def test_an_unknown_name_is_404(client: httpx.AsyncClient, url: str) -> None:
    for name in ("Nobody", "a/b", "merge", "../x", "😀", "a\tb", "x" * 1000):
        response = await client.get(f"{url}/{quote(name, safe='')}")
        assert (response.status_code, response.json()["code"]) == (404, "entity_not_found"), name


@pytest.mark.parametrize("name", ["\\u0000", "\\ud800"])
async def test_a_cursor_that_holds_no_name_is_refused(client: httpx.AsyncClient, url: str, name: str) -> None:
    response = await client.get(url, params={"cursor": urlsafe_b64encode(f'["{name}"]'.encode()).decode()})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_cursor")


@pytest.mark.parametrize("name", ["%00", "a%07b", "x" * 1001])
async def test_a_name_that_cannot_be_is_refused(client: httpx.AsyncClient, url: str, name: str) -> None:
    response = await client.get(f"{url}/{name}")
    assert (response.status_code, response.json()["code"]) == (422, "validation_error")


async def test_merged_entities_answer_under_one_name(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, url: str, document: Any
) -> None:
    body = {"sources": ["Helena Petrova"], "target": "Elena Petrova"}
    response = await client.post(f"{url}/merge", json=body)
    assert response.status_code == 200, response.text
    ends = {end for relation in response.json()["relations"] for end in (relation["source"], relation["target"])}
    assert {"Bluewater Prize", "Harbor Works"} & ends
    assert (await client.get(f"{url}/{quote('Helena Petrova')}")).json()["name"] == "Elena Petrova"
    assert "Helena Petrova" not in await names(client, url, limit=200)
    answer = await client.post(
        f"/v1/workspaces/{workspace_id}/query",
        json={"query": "Which prize did Elena Petrova receive?", "mode": "local"},
    )
    found = [entity["name"] for entity in answer.json()["evidence"]["entities"]]
    assert "Elena Petrova" in found
    assert "Helena Petrova" not in found


async def test_a_merge_that_cannot_be_changes_nothing(client: httpx.AsyncClient, url: str, document: Any) -> None:
    before = await names(client, url, limit=200)
    refused: list[tuple[dict[str, Any], set[int]]] = [
        ({"sources": ["Nobody"], "target": "Elena Petrova"}, {404}),
        ({"sources": ["Elena Petrova"], "target": "Elena Petrova"}, {409, 422}),
        ({"sources": [], "target": "Elena Petrova"}, {422}),
        ({"sources": ["Helena Petrova\x00"], "target": "Elena Petrova"}, {422}),
        ({"sources": ["Helena Petrova"], "target": " "}, {422}),
        ({"sources": ["Helena Petrova"]}, {422}),
    ]
    for body, statuses in refused:
        response = await client.post(f"{url}/merge", json=body)
        assert response.status_code in statuses, (body, response.text)
        assert response.headers["content-type"] == "application/problem+json"
    assert await names(client, url, limit=200) == before


async def test_a_workspace_that_is_being_written_is_busy(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, workspace_id: WorkspaceId, url: str,
    document: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(changes, "LEASE_WAIT_SECONDS", 0.3)
    ref = WorkspaceRef(TenantId(tenancy.tenant_id), workspace_id, 0)
    body = {"sources": ["Helena Petrova"], "target": "Elena Petrova"}
    async with container.leases.hold(ref, wait_seconds=5):
        response = await client.post(f"{url}/merge", json=body)
    assert (response.status_code, response.json()["code"]) == (503, "workspace_busy")
    assert int(response.headers["retry-after"]) > 0
    assert (await client.post(f"{url}/merge", json=body)).status_code == 200


async def test_two_merges_at_once_both_succeed_one_after_the_other(
    client: httpx.AsyncClient, url: str, document: Any
) -> None:
    merges = [("Helena Petrova", "Elena Petrova"), ("Ingrid Solberg", "Professor Solberg")]
    known = await names(client, url, limit=200)
    wanted = [(source, target) for source, target in merges if source in known]
    responses = await asyncio.gather(
        *(client.post(f"{url}/merge", json={"sources": [source], "target": target}) for source, target in wanted)
    )
    assert [response.status_code for response in responses] == [200] * len(wanted)


async def test_only_admins_merge_and_strangers_see_nothing(
    connect: Connect, stranger: httpx.AsyncClient, tenancy: Tenancy, url: str, document: Any
) -> None:
    editor = await connect(tenancy, Role.EDITOR)
    body = {"sources": ["Helena Petrova"], "target": "Elena Petrova"}
    assert (await editor.post(f"{url}/merge", json=body)).json()["code"] == "role_required"
    assert (await editor.get(f"{url}/{quote('Elena Petrova')}")).status_code == 200
    for refused in (await stranger.get(url), await stranger.post(f"{url}/merge", json=body)):
        assert refused.json()["code"] == "workspace_not_found"


async def test_without_the_graph_there_are_no_entities(client: httpx.AsyncClient, tenancy: Tenancy) -> None:
    url = f"/v1/workspaces/{await tenancy.add_workspace()}/entities"
    for refused in (await client.get(url), await client.get(f"{url}/x")):
        assert (refused.status_code, refused.json()["code"]) == (409, "engine_off")


async def delete(client: httpx.AsyncClient, worker: Worker, tenancy: Tenancy, document: Any) -> None:
    where = f"/v1/workspaces/{document['workspace_id']}/documents/{document['id']}"
    assert (await client.delete(where)).status_code == 202
    purge = PurgeDocument(tenancy.tenant_id, WorkspaceId(UUID(document["workspace_id"])), UUID(document["id"]))
    await attempt(worker.jobs, purge, runs=1)
    assert (await client.get(where)).status_code == 404


async def test_a_merged_name_does_not_come_back_with_later_documents_and_goes_with_the_last(
    client: httpx.AsyncClient, worker: Worker, tenancy: Tenancy, workspace_id: WorkspaceId, url: str, document: Any,
    index: Index,
) -> None:  # fmt: skip
    await client.post(f"{url}/merge", json={"sources": ["Helena Petrova"], "target": "Elena Petrova"})
    later = await upload_text(client, workspace_id, "Helena Petrova opened the Granite Museum in Bremen in 2025.")
    await index(tenancy, later)
    assert {"Elena Petrova", "Granite Museum"} <= set(await names(client, url, limit=200))
    assert "Helena Petrova" not in await names(client, url, limit=200)
    read = (await client.get(f"{url}/{quote('Helena Petrova')}")).json()
    assert (read["name"], later["version"]["id"]) == ("Elena Petrova", read["chunks"][-1]["version_id"])
    await delete(client, worker, tenancy, document)
    assert "Elena Petrova" in await names(client, url, prefix="Elena")
    await delete(client, worker, tenancy, later)
    assert await names(client, url) == []
    for mode in GRAPH_MODES:
        body = {"query": "Who are Helena Petrova and Elena Petrova?", "mode": mode}
        answer = (await client.post(f"/v1/workspaces/{workspace_id}/query", json=body)).json()
        assert answer["evidence"] == {"entities": [], "relations": [], "passages": []}, mode


async def test_aliases_are_added_listed_and_removed(client: httpx.AsyncClient, url: str, document: Any) -> None:
    for alias in ("Prof. Petrova", "E/P"):
        made = await client.post(f"{url}/aliases", json={"alias": alias, "target": "elena petrova"})
        assert (made.status_code, made.json()["target"]) == (201, "Elena Petrova"), made.text
        assert (await client.get(f"{url}/{quote(alias, safe='')}")).json()["name"] == "Elena Petrova"
    listed = (await client.get(f"{url}/aliases", params={"limit": 1})).json()
    assert [item["alias"] for item in listed["items"]] == ["E/P"]
    rest = (await client.get(f"{url}/aliases", params={"cursor": listed["next_cursor"]})).json()
    assert [(item["alias"], item["source"]) for item in rest["items"]] == [("Prof. Petrova", "manual")]
    assert (await client.delete(f"{url}/aliases/{quote('e/p', safe='')}")).status_code == 204
    again = await client.delete(f"{url}/aliases/{quote('e/p', safe='')}")
    assert (again.status_code, again.json()["code"]) == (404, "alias_not_found")
    taken = await client.post(f"{url}/aliases", json={"alias": "harbor works", "target": "Elena Petrova"})
    assert (taken.status_code, taken.json()["code"]) == (409, "alias_taken")
    same = await client.post(f"{url}/aliases", json={"alias": "X", "target": " x "})
    assert (same.status_code, same.json()["code"]) == (422, "invalid_alias")


async def test_only_admins_change_aliases(
    connect: Connect, stranger: httpx.AsyncClient, tenancy: Tenancy, url: str
) -> None:
    editor = await connect(tenancy, Role.EDITOR)
    body = {"alias": "A", "target": "B"}
    for refused in (await editor.post(f"{url}/aliases", json=body), await editor.delete(f"{url}/aliases/A")):
        assert refused.json()["code"] == "role_required"
    assert (await editor.get(f"{url}/aliases")).json()["items"] == []
    for hidden in (
        await stranger.get(f"{url}/aliases"),
        await stranger.post(f"{url}/aliases", json=body),
        await stranger.delete(f"{url}/aliases/A"),
    ):
        assert (hidden.status_code, hidden.json()["code"]) == (404, "workspace_not_found")
