"""Admins manage the keys of their own tenant, and of no other."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import text

from app.db.session import Database
from app.domain.tenants.records import Role
from tests.api.conftest import Connect
from tests.factories import Tenancy


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def test_a_key_is_shown_once_and_works_until_it_is_revoked(
    client: httpx.AsyncClient, anonymous: httpx.AsyncClient, tenancy: Tenancy
) -> None:
    made = await client.post("/v1/keys", json={"name": "backend", "role": "reader"})
    assert made.status_code == 201
    key = made.json()
    me = (await anonymous.get("/v1/me", headers=bearer(key["key"]))).json()
    assert (me["tenant"]["id"], me["role"], me["key_id"]) == (str(tenancy.tenant_id), "reader", key["id"])
    listed = await client.get("/v1/keys")
    assert key["prefix"] in listed.text
    assert key["key"].split("_", 2)[2] not in listed.text
    revoked = await client.delete(f"/v1/keys/{key['id']}")
    assert revoked.json()["revoked_at"] is not None
    assert (await anonymous.get("/v1/me", headers=bearer(key["key"]))).status_code == 401
    again = await client.delete(f"/v1/keys/{key['id']}")
    assert again.json()["revoked_at"] == revoked.json()["revoked_at"]


async def test_an_expiry_that_is_over_is_refused(client: httpx.AsyncClient) -> None:
    body = {"name": "backend", "role": "reader", "expires_at": "2020-01-01T00:00:00Z"}
    refused = await client.post("/v1/keys", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "validation_error")
    assert "must be in the future" in refused.text


async def test_a_rotated_key_has_a_successor_and_an_end(
    client: httpx.AsyncClient, anonymous: httpx.AsyncClient, tenancy: Tenancy
) -> None:
    workspace_id = await tenancy.add_workspace()
    body = {"name": "backend", "role": "editor", "workspace_id": str(workspace_id)}
    old = (await client.post("/v1/keys", json=body)).json()
    new = (await client.post(f"/v1/keys/{old['id']}/rotate", json={"overlap_seconds": 600})).json()
    assert (new["role"], new["workspace_id"], new["name"]) == ("editor", str(workspace_id), "backend")
    for key in (old, new):
        assert (await anonymous.get("/v1/me", headers=bearer(key["key"]))).status_code == 200
    [ending] = [row for row in (await client.get("/v1/keys")).json()["items"] if row["id"] == old["id"]]
    assert datetime.fromisoformat(ending["expires_at"]) < datetime.now(UTC) + timedelta(seconds=601)
    last = (await client.post(f"/v1/keys/{new['id']}/rotate", json={})).json()
    assert (await anonymous.get("/v1/me", headers=bearer(new["key"]))).status_code == 401
    assert (await anonymous.get("/v1/me", headers=bearer(last["key"]))).status_code == 200
    dead = await client.post(f"/v1/keys/{new['id']}/rotate", json={})
    assert (dead.status_code, dead.json()["code"]) == (409, "key_not_in_use")


async def test_keys_of_another_tenant_do_not_exist(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, other_tenancy: Tenancy
) -> None:
    foreign = (await stranger.get("/v1/keys")).json()["items"][0]
    assert foreign["id"] not in (await client.get("/v1/keys")).text
    assert (await client.delete(f"/v1/keys/{foreign['id']}")).json()["code"] == "key_not_found"
    assert (await client.post(f"/v1/keys/{foreign['id']}/rotate", json={})).json()["code"] == "key_not_found"
    workspace_id = await other_tenancy.add_workspace()
    body = {"name": "spy", "role": "reader", "workspace_id": str(workspace_id)}
    assert (await client.post("/v1/keys", json=body)).json()["code"] == "workspace_not_found"
    assert (await stranger.get("/v1/me")).status_code == 200


async def test_keys_are_listed_page_by_page(client: httpx.AsyncClient) -> None:
    names = [f"key {number}" for number in range(4)]
    for name in names:
        await client.post("/v1/keys", json={"name": name, "role": "reader"})
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await client.get("/v1/keys", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
        found += [row["name"] for row in page["items"]]
        cursor = page["next_cursor"]
    assert found == ["test", *names]


@pytest.mark.parametrize("role", [Role.READER, Role.EDITOR])
async def test_only_admins_manage_keys(connect: Connect, tenancy: Tenancy, role: Role) -> None:
    caller = await connect(tenancy, role)
    assert (await caller.get("/v1/keys")).json()["code"] == "role_required"
    assert (await caller.post("/v1/keys", json={"name": "up", "role": "admin"})).json()["code"] == "role_required"


async def test_a_key_of_one_workspace_makes_no_keys(connect: Connect, tenancy: Tenancy) -> None:
    bound = await connect(tenancy, Role.ADMIN, workspace_id=await tenancy.add_workspace())
    assert (await bound.post("/v1/keys", json={"name": "up", "role": "admin"})).json()[
        "code"
    ] == "key_bound_to_workspace"


async def test_the_last_use_of_a_key_is_written_now_and_then(
    connect: Connect, tenancy: Tenancy, owner_database: Database
) -> None:
    client = await connect(tenancy)

    async def last_used() -> tuple[object, object]:
        async with owner_database.system() as session:
            statement = text("SELECT last_used_at, xmin::text FROM api_keys WHERE tenant_id = :tenant")
            return tuple((await session.execute(statement, {"tenant": tenancy.tenant_id})).one())

    assert (await last_used())[0] is None
    await client.get("/v1/me")
    first = await last_used()
    assert first[0] is not None
    await client.get("/v1/me")
    assert await last_used() == first
    async with owner_database.system() as session:
        await session.execute(
            text("UPDATE api_keys SET last_used_at = now() - interval '2 minutes' WHERE tenant_id = :tenant"),
            {"tenant": tenancy.tenant_id},
        )
    await client.get("/v1/me")
    later = (await last_used())[0]
    assert isinstance(later, datetime)
    assert isinstance(first[0], datetime)
    assert later > first[0]


async def test_an_unknown_key_is_404(client: httpx.AsyncClient) -> None:
    assert (await client.delete(f"/v1/keys/{uuid4()}")).json()["code"] == "key_not_found"
