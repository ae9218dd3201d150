"""Entities and relations by hand over HTTP."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from app.db.base import WorkspaceId
from app.domain.tenants.records import Role
from tests.api.conftest import Connect
from tests.factories import Tenancy

NAMES = [
    "Hall B",
    "a/b\\c",
    "aliases",
    "tab\there",
    "名" * 600,
    "🚀 {0} %s '; --",
    "شركة النور",
    "changes/x?y=z&w",
]


@pytest.fixture
async def url(tenancy: Tenancy) -> str:
    workspace_id: WorkspaceId = await tenancy.add_workspace(engines=("lazy", "graph"))
    return f"/v1/workspaces/{workspace_id}"


async def create(client: httpx.AsyncClient, url: str, name: str, **fields: Any) -> httpx.Response:
    return await client.post(f"{url}/entities", json={"name": name, "description": "By hand.", **fields})


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
async def test_any_name_is_made_read_edited_related_and_deleted(client: httpx.AsyncClient, url: str, name: str) -> None:
    made = await create(client, url, name, type="Thing")
    assert made.status_code == 201, made.text
    await create(client, url, "Plain")
    (item,) = [item for item in (await client.get(f"{url}/entities")).json()["items"] if item["name"] != "Plain"]
    assert (await client.get(item["link"])).json()["description"] == "By hand."
    where = {"name": name}
    edited = await client.patch(f"{url}/entity", params=where, json={"description": "Edited."})
    assert (edited.status_code, edited.json()["description"], edited.json()["type"]) == (200, "Edited.", "Thing")
    body = {"source": name, "target": "Plain", "description": "Stands beside."}
    related = await client.post(f"{url}/relations", json=body)
    assert related.status_code == 201, related.text
    ends = {"source": "Plain", "target": name}
    assert (await client.get(f"{url}/relation", params=ends)).json() == related.json()
    weighed = await client.patch(f"{url}/relation", params=ends, json={"weight": 3, "keywords": "place"})
    assert (weighed.json()["weight"], weighed.json()["keywords"]) == (3.0, "place")
    assert (await client.delete(f"{url}/relation", params=ends)).status_code == 204
    assert (await client.get(f"{url}/relation", params=ends)).json()["code"] == "relation_not_found"
    assert (await client.delete(f"{url}/entity", params=where)).status_code == 204
    assert (await client.get(f"{url}/entity", params=where)).json()["code"] == "entity_not_found"
    kinds = [change["kind"] for change in (await client.get(f"{url}/entities/changes", params=where)).json()["items"]]
    assert kinds == [
        "delete_entity",
        "delete_relation",
        "edit_relation",
        "create_relation",
        "edit_entity",
        "create_entity",
    ]


async def test_bodies_that_say_nothing_or_too_much_are_refused(client: httpx.AsyncClient, url: str) -> None:
    await create(client, url, "Hall B")
    where = {"name": "Hall B"}
    for body in ({}, {"name": "x"}, {"type": ""}, {"description": "a\x00b"}, {"type": 3}):
        response = await client.patch(f"{url}/entity", params=where, json=body)
        assert (response.status_code, response.json()["code"]) == (422, "validation_error"), body
    for weight in (0, -1, 1e9, "NaN"):
        relation = {"source": "Hall B", "target": "X", "description": "d", "weight": weight}
        assert (await client.post(f"{url}/relations", json=relation)).status_code == 422
    again = await create(client, url, "HALL  b")
    assert (again.status_code, again.json()["code"]) == (409, "entity_exists")
    assert (await client.patch(f"{url}/entity", json={"type": "X"})).status_code == 422


async def test_changes_by_hand_are_audited_and_asked_of_editors_only(
    client: httpx.AsyncClient, connect: Connect, tenancy: Tenancy, url: str
) -> None:
    reader = await connect(tenancy, Role.READER)
    assert (await create(reader, url, "Hall B")).json()["code"] == "role_required"
    editor = await connect(tenancy, Role.EDITOR)
    assert (await create(editor, url, "Hall B")).status_code == 201
    told = (await client.get("/v1/audit", params={"subject": "Hall B"})).json()["items"]
    assert {(event["kind"], event["change"]) for event in told} >= {("entity", "insert"), ("entity_edit", "insert")}


async def test_a_long_name_is_shown_whole_and_has_a_short_address(client: httpx.AsyncClient, url: str) -> None:
    name = "名" * 600
    assert (await create(client, url, name)).json()["name"] == name
    await create(client, url, "Plain")
    listed = (await client.get(f"{url}/entities", params={"prefix": "名"})).json()["items"]
    assert [item["name"] for item in listed] == [name]
    assert len(listed[0]["link"]) < 2_000
    assert (await client.get(listed[0]["link"])).json()["name"] == name
    assert (await client.get(f"{url}/entities/{quote(name)}")).json()["name"] == name
    edited = await client.patch(f"{url}/entity", params={"name": name}, json={"type": "Act"})
    assert (edited.json()["name"], edited.json()["type"]) == (name, "Act")
    relation = {"source": name, "target": "Plain", "description": "x"}
    assert name in (await client.post(f"{url}/relations", json=relation)).text
    told = (await client.get(f"{url}/entities/changes", params={"name": name})).json()["items"]
    assert [change["names"][-1] for change in told] == [name] * 3
    assert (await client.delete(f"{url}/entity", params={"name": name})).status_code == 204
    assert (await client.get(f"{url}/entity", params={"name": name})).status_code == 404
