"""The same bytes again in a workspace are answered with the document that holds them."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.bootstrap import Container
from app.db.base import WorkspaceId
from tests.factories import Tenancy

TEXT = b"Press 4 was stopped at 14:10."


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace()


@pytest.fixture
def url(workspace_id: WorkspaceId) -> str:
    return f"/v1/workspaces/{workspace_id}/documents"


async def upload(client: httpx.AsyncClient, url: str, *files: tuple[str, bytes], **params: Any) -> httpx.Response:
    return await client.post(
        url, params=params, files=[("files", (name, content, "text/plain")) for name, content in files]
    )


async def documents(client: httpx.AsyncClient, url: str) -> list[str]:
    return [item["id"] for item in (await client.get(url)).json()["items"]]


def stored_files(container: Container, tenancy: Tenancy) -> list[Path]:
    folder = Path(container.settings.blob_url.removeprefix("file://")) / str(tenancy.tenant_id)
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_the_same_bytes_again_are_told_to_be_there(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, url: str
) -> None:
    first = await upload(client, url, ("a.txt", TEXT))
    [made] = first.json()["documents"]
    again = await upload(client, url, ("other name.md", TEXT))
    [found] = again.json()["documents"]
    assert (first.status_code, made["duplicate"]) == (202, False)
    assert (again.status_code, found) == (200, made | {"duplicate": True})
    assert again.headers["location"] == made["links"]["self"]
    assert await documents(client, url) == [made["id"]]
    assert len(stored_files(container, tenancy)) == 1


async def test_a_text_with_the_bytes_of_a_file_is_a_duplicate(client: httpx.AsyncClient, url: str) -> None:
    [made] = (await upload(client, url, ("a.txt", TEXT))).json()["documents"]
    again = await client.post(url, json={"title": "t", "text": TEXT.decode()})
    assert (again.status_code, again.json()["documents"][0]["id"]) == (200, made["id"])


async def test_a_duplicate_is_made_where_it_is_asked_for(client: httpx.AsyncClient, url: str) -> None:
    [made] = (await upload(client, url, ("a.txt", TEXT))).json()["documents"]
    again = await upload(client, url, ("a.txt", TEXT), duplicate="allow")
    assert again.status_code == 202
    assert again.json()["documents"][0]["duplicate"] is False
    assert len(await documents(client, url)) == 2
    third = await upload(client, url, ("a.txt", TEXT))
    assert third.json()["documents"][0]["id"] == made["id"]


async def test_an_unknown_wish_is_refused(client: httpx.AsyncClient, url: str) -> None:
    refused = await upload(client, url, ("a.txt", TEXT), duplicate="never")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "query.duplicate")
    assert await documents(client, url) == []


async def test_one_request_may_hold_new_and_known_files(client: httpx.AsyncClient, url: str) -> None:
    [made] = (await upload(client, url, ("a.txt", TEXT))).json()["documents"]
    response = await upload(client, url, ("a.txt", TEXT), ("b.txt", b"new"), ("c.txt", b"new"))
    found = response.json()["documents"]
    assert response.status_code == 202
    assert [each["duplicate"] for each in found] == [True, False, True]
    assert found[0]["id"] == made["id"]
    assert found[1]["id"] == found[2]["id"]
    assert len(await documents(client, url)) == 2


async def test_two_uploads_at_once_make_one_document(client: httpx.AsyncClient, url: str) -> None:
    answers = await asyncio.gather(*(upload(client, url, ("a.txt", TEXT)) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 202]
    assert len({answer.json()["documents"][0]["id"] for answer in answers}) == 1
    assert len(await documents(client, url)) == 1


async def test_other_workspaces_and_deleted_documents_do_not_count(
    client: httpx.AsyncClient, tenancy: Tenancy, url: str
) -> None:
    """C23: what is uploaded again after its deletion is a new document."""
    [made] = (await upload(client, url, ("a.txt", TEXT))).json()["documents"]
    other = await tenancy.add_workspace()
    assert (await upload(client, f"/v1/workspaces/{other}/documents", ("a.txt", TEXT))).status_code == 202
    await client.delete(made["links"]["self"])
    again = await upload(client, url, ("a.txt", TEXT))
    assert again.status_code == 202
    assert again.json()["documents"][0]["id"] != made["id"]
