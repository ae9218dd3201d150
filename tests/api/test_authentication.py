"""Who is let in, and what a stranger learns."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import update

from app.db.models import ApiKey, Tenant
from app.db.session import Database
from app.domain.tenants import service
from app.domain.tenants.keys import hash_secret, new_key, parse_key, secret_matches
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService
from tests.api.conftest import Connect
from tests.factories import Tenancy


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic dXNlcjpwYXNz"},
        bearer("trl"),
        bearer("trl__"),
        bearer("trl_000000000000_" + "x" * 43),
        bearer("trl_" + "a" * 5000 + "_b"),
        bearer("sk_abc_def"),
        bearer("trl_a'b_c"),
    ],
)
async def test_a_stranger_gets_401_and_nothing_else(anonymous: httpx.AsyncClient, headers: dict[str, str]) -> None:
    response = await anonymous.get("/v1/me", headers=headers)
    assert (response.status_code, response.json()["code"]) == (401, "invalid_api_key")
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["www-authenticate"].startswith("Bearer")


async def test_a_header_of_raw_bytes_is_401(anonymous: httpx.AsyncClient) -> None:
    response = await anonymous.get("/v1/me", headers=[(b"Authorization", b"Bearer trl_\xff\x00_\xfe")])
    assert response.status_code == 401


async def test_a_right_prefix_with_a_wrong_secret_is_401(
    anonymous: httpx.AsyncClient, owner_database: Database, tenancy: Tenancy
) -> None:
    text = await TenantService(owner_database).create_key(tenancy.tenant_id, name="k", role=Role.ADMIN)
    assert (await anonymous.get("/v1/me", headers=bearer(text))).status_code == 200
    for wrong in (text[:-1], text + "x", text[:-1] + ("a" if text[-1] != "a" else "b"), text.upper()):
        assert (await anonymous.get("/v1/me", headers=bearer(wrong))).status_code == 401


async def test_an_unknown_prefix_costs_a_lookup_and_a_hash_like_a_known_one(
    monkeypatch: pytest.MonkeyPatch, anonymous: httpx.AsyncClient, owner_database: Database, tenancy: Tenancy
) -> None:
    text = await TenantService(owner_database).create_key(tenancy.tenant_id, name="k", role=Role.ADMIN)
    compared: list[bool] = []

    def watched(secret: str, stored: bytes | None) -> bool:
        compared.append(stored is not None)
        return secret_matches(secret, stored)

    monkeypatch.setattr(service, "secret_matches", watched)
    for tried in (text[:-2], "trl_ffffffffffff_" + "x" * 43, "nonsense"):
        await anonymous.get("/v1/me", headers=bearer(tried))
    assert compared == [True, False, False]


async def test_an_expired_key_is_401(connect: Connect, tenancy: Tenancy) -> None:
    good = await connect(tenancy, expires_at=datetime.now(UTC) + timedelta(hours=1))
    expired = await connect(tenancy, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert (await good.get("/v1/me")).status_code == 200
    assert (await expired.get("/v1/me")).status_code == 401


async def test_a_revoked_key_is_401(client: httpx.AsyncClient, owner_database: Database, tenancy: Tenancy) -> None:
    tenants = TenantService(owner_database)
    [key] = await tenants.list_keys(tenancy.tenant_id)
    assert (await client.get("/v1/me")).status_code == 200
    await tenants.revoke_key(tenancy.tenant_id, key.prefix)
    assert (await client.get("/v1/me")).status_code == 401


async def test_a_suspended_tenant_is_403_for_its_own_key_only(
    client: httpx.AsyncClient, owner_database: Database, tenancy: Tenancy
) -> None:
    async with owner_database.system() as session:
        await session.execute(update(Tenant).where(Tenant.id == tenancy.tenant_id).values(status="suspended"))
    response = await client.get("/v1/me")
    assert (response.status_code, response.json()["code"]) == (403, "tenant_suspended")
    wrong = client.headers["Authorization"][:-1]
    assert (await client.get("/v1/me", headers={"Authorization": wrong})).status_code == 401


async def test_a_changed_role_counts_at_once(
    client: httpx.AsyncClient, owner_database: Database, tenancy: Tenancy
) -> None:
    assert (await client.post("/v1/workspaces", json={"name": "as admin"})).status_code == 201
    async with owner_database.tenant(tenancy.tenant_id) as session:
        await session.execute(update(ApiKey).where(ApiKey.tenant_id == tenancy.tenant_id).values(role="reader"))
    assert (await client.post("/v1/workspaces", json={"name": "as reader"})).status_code == 403


async def test_me_tells_the_caller_apart(connect: Connect, tenancy: Tenancy) -> None:
    workspace_id = await tenancy.add_workspace()
    bound = await connect(tenancy, Role.READER, workspace_id=workspace_id)
    me = (await bound.get("/v1/me")).json()
    assert me["tenant"]["id"] == str(tenancy.tenant_id)
    assert (me["role"], me["workspace_id"]) == ("reader", str(workspace_id))


async def test_each_tenant_answers_404_for_the_other_ones_workspace(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, tenancy: Tenancy
) -> None:
    workspace_id = await tenancy.add_workspace()
    assert (await client.get(f"/v1/workspaces/{workspace_id}")).status_code == 200
    response = await stranger.get(f"/v1/workspaces/{workspace_id}")
    assert (response.status_code, response.json()["code"]) == (404, "workspace_not_found")


@pytest.mark.parametrize("change", [str.upper, lambda text: text[:-1], lambda text: "é" + text])
def test_only_the_exact_secret_matches(change: Callable[[str], str]) -> None:
    key = new_key()
    parsed = parse_key(key.text)
    assert parsed == key
    assert secret_matches(key.secret, hash_secret(key.secret))
    assert not secret_matches(change(key.secret), hash_secret(key.secret))
    assert not secret_matches(key.secret, None)


def test_a_secret_is_not_shown_by_its_object() -> None:
    key = new_key()
    assert key.secret not in repr(key)
