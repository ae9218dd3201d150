"""Workspaces over HTTP."""

from base64 import urlsafe_b64encode
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import text

from app.domain.tenants.records import Role
from tests.api.conftest import Connect
from tests.cluster import HAS_AGE
from tests.factories import Tenancy


async def created(client: httpx.AsyncClient, **body: object) -> dict[str, object]:
    response = await client.post("/v1/workspaces", json=body)
    assert response.status_code == 201, response.text
    workspace: dict[str, object] = response.json()
    return workspace


async def test_a_workspace_gets_the_defaults_of_its_engines(client: httpx.AsyncClient) -> None:
    lazy = await created(client, name="plain")
    graph = await created(client, name="with graph", engines=["lazy", "graph"])
    assert (lazy["engines"], lazy["default_mode"], lazy["chat_model"]) == (["lazy"], "lazy", None)
    assert (graph["default_mode"], graph["chat_model"]) == ("mix", "offline-extractor")
    assert graph["embedding_model"] == "offline-use"


async def test_location_leads_to_the_new_workspace(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/workspaces", json={"name": "found again"})
    found = await client.get(response.headers["Location"])
    assert found.json() == response.json()


async def test_a_taken_name_is_a_conflict(client: httpx.AsyncClient) -> None:
    await created(client, name="one")
    response = await client.post("/v1/workspaces", json={"name": "one"})
    assert (response.status_code, response.json()["code"]) == (409, "workspace_exists")


@pytest.mark.skipif(HAS_AGE, reason="these servers have it")
async def test_a_graph_store_that_is_not_there_is_refused(client: httpx.AsyncClient) -> None:
    body = {"name": "age", "engines": ["lazy", "graph"], "graph_store": "age"}
    response = await client.post("/v1/workspaces", json=body)
    assert (response.status_code, response.json()["code"]) == (409, "graph_store_unavailable")
    assert (await client.get("/v1/workspaces")).json()["items"] == []


@pytest.mark.age
async def test_a_workspace_may_keep_its_graph_in_age(client: httpx.AsyncClient) -> None:
    made = await created(client, name="age", engines=["lazy", "graph"], graph_store="age")
    assert made["graph_store"] == "age"


async def test_a_graph_store_without_a_graph_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/workspaces", json={"name": "age", "graph_store": "age"})
    assert (response.status_code, response.json()["code"]) == (422, "validation_error")


async def test_two_tenants_may_use_one_name(client: httpx.AsyncClient, stranger: httpx.AsyncClient) -> None:
    await created(client, name="same")
    await created(stranger, name="same")


async def test_names_that_look_alike_are_different_workspaces(client: httpx.AsyncClient) -> None:
    long = "x" * 69
    names = ["tenant-1", "tenant_1", "tenant.1", "销售部门", "技术部门", f"{long}a", f"{long}b"]
    ids = {(await created(client, name=name))["id"] for name in names}
    assert len(ids) == len(names)


@pytest.mark.parametrize(
    ("body", "code", "fact"),
    [
        ({"name": "x", "embedding_model": "nope"}, "unknown_model", "known"),
        ({"name": "x", "engines": ["lazy", "graph"], "chat_model": "offline-use"}, "unknown_model", "known"),
        ({"name": "x", "default_mode": "nope"}, "unknown_mode", "modes"),
        ({"name": "x", "default_mode": "mix"}, "mode_needs_engine", "modes"),
        ({"name": "x", "engines": ["graph"]}, "validation_error", "errors"),
        ({"name": "x", "engines": ["lazy", "lazy"]}, "validation_error", "errors"),
        ({"name": "x", "nmae": "y"}, "validation_error", "errors"),
        ({"name": "a\x00b"}, "validation_error", "errors"),
        ({"name": "a\nb"}, "validation_error", "errors"),
        ({"name": " "}, "validation_error", "errors"),
        ({"name": "x", "settings": {"chunk_tokens": 5}}, "validation_error", "errors"),
        ({"name": "x", "settings": {"chunk_size": 500}}, "validation_error", "errors"),
        ({"name": "x", "settings": {"partial_graphs": "maybe"}}, "validation_error", "errors"),
        ({"name": "x", "settings": {"parse_timeout_seconds": 0}}, "validation_error", "errors"),
        ({"name": "x", "settings": {"extract_timeout_seconds": 1e9}}, "validation_error", "errors"),
        ({"name": "x", "settings": {"merge_timeout_seconds": "soon"}}, "validation_error", "errors"),
        ({"name": "x", "settings": {"extraction_examples": ["a\x00b"]}}, "validation_error", "errors"),
    ],
)
async def test_what_cannot_work_is_refused_with_the_facts(
    client: httpx.AsyncClient, body: dict[str, object], code: str, fact: str
) -> None:
    response = await client.post("/v1/workspaces", json=body)
    problem = response.json()
    assert (response.status_code, problem["code"]) == (422, code)
    assert problem[fact]


async def test_equal_entity_types_are_refused(client: httpx.AsyncClient) -> None:
    kinds = [{"name": "Machine", "description": "a"}, {"name": "machine", "description": "b"}]
    response = await client.post("/v1/workspaces", json={"name": "x", "settings": {"entity_types": kinds}})
    assert response.json()["code"] == "validation_error"
    assert "different names" in response.json()["detail"]


async def test_a_patch_changes_only_what_it_names(client: httpx.AsyncClient) -> None:
    made = await created(client, name="before", settings={"gleaning": 1, "chunk_tokens": 900})
    response = await client.patch(
        f"/v1/workspaces/{made['id']}", json={"name": "after", "default_mode": "baseline", "settings": {"gleaning": 2}}
    )
    changed = response.json()
    assert (changed["name"], changed["default_mode"]) == ("after", "baseline")
    assert changed["settings"] == {**made["settings"], "gleaning": 2}  # type: ignore[dict-item]
    assert (await client.get(f"/v1/workspaces/{made['id']}")).json() == changed


async def test_settings_of_a_newer_release_are_passed_over_and_kept(
    client: httpx.AsyncClient, tenancy: Tenancy
) -> None:
    made = await created(client, name="from a newer release")
    unknown = text("""UPDATE workspaces SET settings = settings || '{"not_known_yet": 1}' WHERE id = :id""")
    async with tenancy.owner_database.tenant(tenancy.tenant_id) as session:
        await session.execute(unknown, {"id": made["id"]})
    path = f"/v1/workspaces/{made['id']}"
    assert (await client.get(path)).json()["settings"] == made["settings"]
    assert (await client.patch(path, json={"settings": {"gleaning": 2}})).json()["settings"]["gleaning"] == 2
    async with tenancy.owner_database.tenant(tenancy.tenant_id) as session:
        kept = await session.scalar(text("SELECT settings FROM workspaces WHERE id = :id"), {"id": made["id"]})
    assert (kept["not_known_yet"], kept["gleaning"]) == (1, 2)


async def test_a_patch_to_a_taken_name_is_a_conflict(client: httpx.AsyncClient) -> None:
    await created(client, name="taken")
    made = await created(client, name="free")
    response = await client.patch(f"/v1/workspaces/{made['id']}", json={"name": "taken"})
    assert (response.status_code, response.json()["code"]) == (409, "workspace_exists")


async def test_pages_follow_each_other_without_gaps(client: httpx.AsyncClient) -> None:
    made = [(await created(client, name=f"number {number}"))["id"] for number in range(5)]
    listed: list[object] = []
    cursor: str | None = None
    while True:
        params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await client.get("/v1/workspaces", params=params)).json()
        listed += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert listed == made


def cursor_of(content: str) -> str:
    return urlsafe_b64encode(content.encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "%%%",
        cursor_of("[]"),
        cursor_of('["a","b"]'),
        cursor_of("[" * 1490),
        cursor_of(f'["0001-01-01T00:00:00+14:00","{uuid4()}"]'),
    ],
    ids=["no base64", "no letters", "no keys", "other keys", "nested", "before all time"],
)
async def test_an_invented_cursor_is_refused(client: httpx.AsyncClient, cursor: str) -> None:
    response = await client.get("/v1/workspaces", params={"cursor": cursor})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_cursor")


async def test_a_deleted_workspace_takes_no_more_work(client: httpx.AsyncClient) -> None:
    made = await created(client, name="gone soon")
    url = f"/v1/workspaces/{made['id']}"
    response = await client.delete(url)
    assert (response.status_code, response.json()["status"]) == (202, "deleting")
    assert (await client.delete(url)).status_code == 202
    for refused in (
        await client.patch(url, json={"name": "x"}),
        await client.post(f"{url}/reindex"),
        await client.post(f"{url}/documents", json={"title": "t", "text": "x"}),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "workspace_deleting")


async def test_only_admins_change_workspaces(connect: Connect, tenancy: Tenancy, client: httpx.AsyncClient) -> None:
    made = await created(client, name="guarded")
    editor = await connect(tenancy, Role.EDITOR)
    reader = await connect(tenancy, Role.READER)
    for refused in (
        await editor.post("/v1/workspaces", json={"name": "x"}),
        await editor.patch(f"/v1/workspaces/{made['id']}", json={"name": "x"}),
        await editor.delete(f"/v1/workspaces/{made['id']}"),
        await reader.post(f"/v1/workspaces/{made['id']}/reindex"),
    ):
        assert (refused.status_code, refused.json()["code"]) == (403, "role_required")


async def test_a_bound_key_sees_its_workspace_only(connect: Connect, tenancy: Tenancy) -> None:
    own, other = await tenancy.add_workspace(), await tenancy.add_workspace()
    bound = await connect(tenancy, workspace_id=own)
    listed = (await bound.get("/v1/workspaces")).json()["items"]
    assert [item["id"] for item in listed] == [str(own)]
    assert (await bound.get(f"/v1/workspaces/{own}")).status_code == 200
    assert (await bound.get(f"/v1/workspaces/{other}")).json()["code"] == "workspace_not_found"
    refused = await bound.post("/v1/workspaces", json={"name": "x"})
    assert (refused.status_code, refused.json()["code"]) == (403, "key_bound_to_workspace")
