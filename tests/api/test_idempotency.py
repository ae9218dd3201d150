"""A request that is sent again with its Idempotency-Key has one effect and one answer."""

import asyncio
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import text

from app.api.idempotency import BodyDigest
from app.bootstrap import Container, Worker
from app.db.base import WorkspaceId
from app.db.session import Database
from app.domain.idempotency.repository import Name
from app.domain.idempotency.service import IdempotencyService
from app.domain.tenants.records import Role
from app.main import create_app
from tests.api.conftest import Connect
from tests.factories import Tenancy

KEY = "8e03978e-40d5-43e8-bc93-6894a57f9324"
FORM = "multipart/form-data; boundary={}"


def keyed(key: str = KEY) -> dict[str, str]:
    return {"Idempotency-Key": key}


async def create(client: httpx.AsyncClient, name: str = "w", key: str = KEY, **options: Any) -> httpx.Response:
    return await client.post("/v1/workspaces", json={"name": name}, headers=keyed(key), **options)


async def names(client: httpx.AsyncClient) -> list[str]:
    return [item["name"] for item in (await client.get("/v1/workspaces")).json()["items"]]


def form(boundary: str, content: bytes = b"Press 4 was stopped.") -> dict[str, Any]:
    body = (
        (
            f'--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n'
            f"Content-Type: text/plain\r\n\r\n"
        ).encode()
        + content
        + f"\r\n--{boundary}--\r\n".encode()
    )
    return {"content": body, "headers": {"content-type": FORM.format(boundary), **keyed()}}


async def service_of(container: Container, lease_seconds: float = 30) -> IdempotencyService:
    return IdempotencyService(
        container.database, container.settings.secret_key, lease_seconds=lease_seconds, keep_seconds=60
    )


async def name_of(client: httpx.AsyncClient, route: str = "POST /v1/workspaces") -> Name:
    return Name(f"key:{(await client.get('/v1/me')).json()['key_id']}", KEY, route)


async def test_a_repetition_gets_the_first_answer(client: httpx.AsyncClient) -> None:
    first = await create(client)
    again = await create(client)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again.headers["location"] == first.headers["location"]
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    assert first.headers["x-request-id"] != again.headers["x-request-id"]
    assert await names(client) == ["w"]
    quoted = await create(client, key=f'"{KEY}"')
    assert quoted.content == first.content


async def test_the_key_of_another_request_is_refused(client: httpx.AsyncClient) -> None:
    await create(client, "first")
    for refused in (await create(client, "second"), await create(client, "first", params={"x": "1"})):
        assert refused.status_code == 422
    assert (await create(client, "second")).json()["code"] == "idempotency_key_reused"
    assert await names(client) == ["first"]


async def test_a_form_may_come_with_another_boundary(client: httpx.AsyncClient, tenancy: Tenancy) -> None:
    url = f"/v1/workspaces/{await tenancy.add_workspace()}/documents"
    first = await client.post(url, **form("one-boundary-0123456789"))
    again = await client.post(url, **form("another-boundary-987654"))
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    other = await client.post(url, **form("third-boundary-11111111", b"Press 5 was stopped."))
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len((await client.get(url)).json()["items"]) == 1


async def test_a_large_upload_is_recognized_too(client: httpx.AsyncClient, tenancy: Tenancy) -> None:
    url = f"/v1/workspaces/{await tenancy.add_workspace()}/documents"
    content = b"All work and no play. " * 200_000
    first = await client.post(url, **form("one-boundary-0123456789", content))
    again = await client.post(url, **form("another-boundary-987654", content))
    assert (again.status_code, again.json()) == (202, first.json())


async def test_two_at_once_have_one_effect(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(create(client) for _ in range(6)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    done = {answer.content for answer in answers if answer.status_code == 201}
    refused = {answer.json()["code"] for answer in answers if answer.status_code == 409}
    assert len(done) == 1
    assert refused <= {"idempotency_in_progress"}
    assert await names(client) == ["w"]


async def test_a_request_under_way_is_a_conflict_with_a_time(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy
) -> None:
    service = await service_of(container)
    owner = await service.begin(tenancy.tenant_id, await name_of(client))
    refused = await create(client)
    assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_in_progress")
    assert int(refused.headers["retry-after"]) > 0
    assert isinstance(owner, UUID)
    await service.release(tenancy.tenant_id, owner)
    assert (await create(client)).status_code == 201


async def test_what_a_dead_process_had_taken_is_free_again(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy
) -> None:
    service = await service_of(container, lease_seconds=0)
    lost = await service.begin(tenancy.tenant_id, await name_of(client))
    assert (await create(client)).status_code == 201
    assert isinstance(lost, UUID)
    await service.release(tenancy.tenant_id, lost)  # it wakes up late: the answer is another's
    assert (await create(client)).headers["idempotent-replayed"] == "true"


async def test_a_refusal_leaves_the_key_free(client: httpx.AsyncClient, connect: Connect, tenancy: Tenancy) -> None:
    assert (await create(client, "")).status_code == 422
    assert (await client.post("/v1/workspaces", content=b"{", headers=keyed())).status_code == 422
    await create(client, "taken", key="other")
    assert (await create(client, "taken")).json()["code"] == "workspace_exists"
    assert (await create(client, "free")).status_code == 201
    reader = await connect(tenancy, Role.READER)
    assert (await create(reader)).json()["code"] == "role_required"


async def test_callers_and_tenants_have_keys_of_their_own(
    client: httpx.AsyncClient, connect: Connect, stranger: httpx.AsyncClient, tenancy: Tenancy
) -> None:
    await create(client, "a")
    other = await connect(tenancy)
    assert (await create(other, "b")).status_code == 201
    assert (await create(stranger, "a")).status_code == 201
    assert sorted(await names(client)) == ["a", "b"]


async def test_one_key_serves_each_path_once(client: httpx.AsyncClient) -> None:
    workspace = (await create(client)).json()
    document: dict[str, Any] = {"json": {"title": "t", "text": "x"}, "headers": keyed()}
    assert (await client.post(f"/v1/workspaces/{workspace['id']}/documents", **document)).status_code == 202


async def test_a_secret_is_kept_encrypted_and_shown_to_its_owner_again(
    client: httpx.AsyncClient, owner_database: Database, tenancy: Tenancy
) -> None:
    wanted: dict[str, Any] = {"json": {"name": "k", "role": "reader"}, "headers": keyed()}
    first = await client.post("/v1/keys", **wanted)
    assert first.status_code == 201, first.text
    [secret] = [value for value in first.json().values() if isinstance(value, str) and value.startswith("trl_")]
    async with owner_database.tenant(tenancy.tenant_id) as session:
        rows = str((await session.execute(text("SELECT * FROM idempotency_keys"))).all())
    assert "POST /v1/keys" in rows
    assert secret not in rows
    assert secret.rpartition("_")[2] not in rows
    assert (await client.post("/v1/keys", **wanted)).json() == first.json()
    assert len((await client.get("/v1/keys")).json()["items"]) == 2


async def test_an_answer_is_forgotten_after_its_time(
    client: httpx.AsyncClient, worker: Worker, owner_database: Database, tenancy: Tenancy
) -> None:
    await create(client, "w")
    async with owner_database.tenant(tenancy.tenant_id) as session:
        await session.execute(
            text("UPDATE idempotency_keys SET expires_at = now() - interval '1 s' WHERE tenant_id = :id"),
            {"id": tenancy.tenant_id},
        )
    assert (await create(client, "other")).status_code == 201  # it counts no more, removed or not
    async with owner_database.tenant(tenancy.tenant_id) as session:
        await session.execute(text("UPDATE idempotency_keys SET expires_at = now() - interval '1 s'"))
    assert await worker.retention.run() >= 1
    async with owner_database.system() as session:
        assert await session.scalar(text("SELECT count(*) FROM idempotency_keys")) == 0


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, '"', 'a"b', "a\\b", "sch\u00f6n"])
async def test_a_key_that_is_none_is_refused(client: httpx.AsyncClient, key: str) -> None:
    refused = await client.post("/v1/workspaces", json={"name": "w"}, headers=[(b"Idempotency-Key", key.encode())])
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "header.Idempotency-Key")
    assert await names(client) == []


async def test_a_question_is_asked_anew(client: httpx.AsyncClient, tenancy: Tenancy) -> None:
    workspace_id: WorkspaceId = await tenancy.add_workspace()
    for question in ("one?", "two?"):
        answer = await client.post(f"/v1/workspaces/{workspace_id}/query", json={"query": question}, headers=keyed())
        assert (answer.status_code, "idempotent-replayed" in answer.headers) == (200, False)


def test_every_route_that_changes_something_by_post_takes_a_key() -> None:
    silent = [
        path
        for path, operations in create_app().openapi()["paths"].items()
        if path.startswith("/v1/") and not path.startswith("/v1/admin/") and "post" in operations
        if not operations["post"].get("x-reads-only")
        if "Idempotency-Key" not in {parameter["name"] for parameter in operations["post"]["parameters"]}
    ]
    assert silent == []


@pytest.mark.parametrize("size", [1, 2, 7, 50, 10_000])
def test_a_fingerprint_does_not_depend_on_pieces_or_boundaries(size: int) -> None:
    def digest(boundary: str, body: str, size: int) -> bytes:
        found = BodyDigest(FORM.format(boundary))
        data = body.replace("B", boundary).encode()
        for start in range(0, len(data), size):
            found.update(data[start : start + size])
        return found.digest()

    body = "--B\r\nfirst\r\n--B\r\n----BsecondB\r\n--B--\r\n"
    assert digest("aaaaXaaaa", body, size) == digest("0123456789", body, 10_000)
    assert digest("aaaaXaaaa", body, size) != digest("aaaaXaaaa", body + "x", size)
