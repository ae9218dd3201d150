"""The audit log: every change by a caller is in it, with who, where and what, and nothing can take it out."""

from typing import Any

import httpx
import pytest
from fastapi import Request
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.api.caller_address import caller_address
from app.db.acting import Acting, nobody_acts, note_caller
from app.db.session import Database
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService
from tests.api.conftest import Connect, Index
from tests.api.documents import upload_text
from tests.factories import Tenancy


async def events(client: httpx.AsyncClient, **wanted: Any) -> list[dict[str, Any]]:
    """Newest first."""
    response = await client.get("/v1/audit", params=wanted)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["items"]
    return found


async def test_a_change_is_told_with_who_when_where_and_what(client: httpx.AsyncClient, tenancy: Tenancy) -> None:
    workspace_id = await tenancy.add_workspace()
    document = await upload_text(client, workspace_id)
    key_id = (await client.get("/v1/me")).json()["key_id"]
    answer = await client.patch(
        document["links"]["self"], json={"title": "Another title"}, headers={"X-Request-ID": "the.request"}
    )
    assert answer.status_code == 200
    [change, made] = await events(client, subject=document["id"])
    assert (change["actor"], change["action"], change["request_id"]) == (
        f"key:{key_id}",
        "update_document",
        "the.request",
    )
    assert (change["kind"], change["change"], change["address"]) == ("document", "update", "127.0.0.1")
    assert (change["before"], change["after"]) == ({"title": "Some title"}, {"title": "Another title"})
    assert change["workspace_id"] == str(workspace_id)
    assert (made["action"], made["change"], made["before"]) == ("upload_documents", "insert", None)
    assert made["after"]["title"] == "Some title"
    assert change["at"] > made["at"]


async def test_work_of_workers_is_nobody_s_change(client: httpx.AsyncClient, tenancy: Tenancy, index: Index) -> None:
    document = await upload_text(client, await tenancy.add_workspace())
    before = await events(client)
    await index(tenancy, document)
    assert (await client.get(document["links"]["self"])).json()["status"] == "ready"
    assert await events(client) == before


async def test_a_merge_of_entities_has_them_before_and_after(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index
) -> None:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    for said in ("Helena Petrowa repairs clocks in Bregenz.", "Elena Petrova met Ben Holm in Port Lindau."):
        await index(tenancy, await upload_text(client, workspace_id, said))
    merge = {"sources": ["Helena Petrowa"], "target": "Elena Petrova"}
    answer = await client.post(f"/v1/workspaces/{workspace_id}/entities/merge", json=merge)
    assert answer.status_code == 200, answer.text
    found = {event["subject"]: event for event in await events(client, kind="entity")}
    assert {event["action"] for event in found.values()} == {"merge_entities"}
    gone = found["Helena Petrowa"]
    assert (gone["change"], gone["after"]) == ("delete", None)
    assert "Petrowa" in gone["before"]["description"]
    kept = found["Elena Petrova"]
    assert kept["before"]["description"] != kept["after"]["description"]


async def test_no_secret_is_in_it(client: httpx.AsyncClient) -> None:
    made = (await client.post("/v1/keys", json={"name": "backend", "role": "reader"})).json()
    await client.post(f"/v1/keys/{made['id']}/rotate", json={})
    shown = str(await events(client, kind="key"))
    assert made["prefix"] in shown
    assert "secret" not in shown
    assert made["key"].split("_", 2)[2] not in shown


async def test_a_use_of_a_key_is_no_change(client: httpx.AsyncClient) -> None:
    await client.get("/v1/me")
    assert await events(client) == []


async def test_what_operators_do_is_in_the_tenant_s_log(
    client: httpx.AsyncClient, tenancy: Tenancy, owner_database: Database
) -> None:
    with nobody_acts():
        note_caller(Acting("operator", "trellis tenant suspend"))
        await TenantService(owner_database).suspend(tenancy.tenant_id)
        await TenantService(owner_database).resume(tenancy.tenant_id)
    [resumed, suspended] = await events(client, actor="operator")
    assert (suspended["action"], suspended["after"]) == ("trellis tenant suspend", {"status": "suspended"})
    assert resumed["before"] == {"status": "suspended"}


async def test_a_refused_change_leaves_nothing(client: httpx.AsyncClient, tenancy: Tenancy) -> None:
    body = {"name": "Twice"}
    assert (await client.post("/v1/workspaces", json=body)).status_code == 201
    assert (await client.post("/v1/workspaces", json=body)).status_code == 409
    assert len(await events(client, kind="workspace")) == 1


async def test_each_tenant_reads_its_own(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, connect: Connect, tenancy: Tenancy
) -> None:
    await client.post("/v1/workspaces", json={"name": "Mine"})
    assert await events(stranger) == []
    for role in (Role.READER, Role.EDITOR):
        assert (await (await connect(tenancy, role)).get("/v1/audit")).json()["code"] == "role_required"


async def test_it_is_read_page_by_page(client: httpx.AsyncClient) -> None:
    for number in range(5):
        await client.post("/v1/workspaces", json={"name": f"Number {number}"})
    found: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await client.get("/v1/audit", params=params)).json()
        found += [event["after"]["name"] for event in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == [f"Number {number}" for number in reversed(range(5))]
    bad = await client.get("/v1/audit", params={"cursor": "WyJ4Il0"})
    assert bad.json()["code"] == "invalid_cursor"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_events SET actor = 'nobody'",
        "DELETE FROM audit_events",
        "TRUNCATE audit_events",
        "INSERT INTO audit_events (tenant_id, actor, action, change, kind, subject) SELECT id, '', '', '', '', '' FROM tenants",
        "DROP TRIGGER audit ON documents",
        "ALTER TABLE documents DISABLE TRIGGER audit",
    ],
)
async def test_a_serving_role_can_only_read_it(
    tenancy: Tenancy, database: Database, engine_database: Database, statement: str
) -> None:
    for role in (database, engine_database):
        with pytest.raises(DBAPIError, match=r"permission denied|must be owner"):
            async with role.tenant(tenancy.tenant_id) as session:
                await session.execute(text(statement))


def request_from(peer: str, *forwarded: str) -> Request:
    headers = [(b"x-forwarded-for", line.encode()) for line in forwarded]
    return Request({"type": "http", "client": (peer, 1), "headers": headers})


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (request_from("203.0.113.7", "1.2.3.4"), "203.0.113.7"),
        (request_from("10.0.0.1", "198.51.100.9"), "198.51.100.9"),
        (request_from("10.0.0.1", "1.2.3.4, 198.51.100.9, 10.0.0.2"), "198.51.100.9"),
        (request_from("10.0.0.1", "1.2.3.4", "198.51.100.9"), "198.51.100.9"),
        (request_from("10.0.0.1", "nonsense"), "10.0.0.1"),
        (request_from("10.0.0.1"), "10.0.0.1"),
    ],
)
def test_only_trusted_proxies_are_believed(request_: Request, expected: str) -> None:
    assert caller_address(request_, ("10.0.0.0/8",)) == expected
    assert caller_address(request_, ()) == request_.client.host  # type: ignore[union-attr]
