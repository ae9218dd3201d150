"""What an upload takes in, and what it refuses before anything is stored."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy.exc import DBAPIError

from app.bootstrap import CeleryPublisher, Container
from app.db.base import WorkspaceId
from app.db.session import Database
from app.domain.documents.originals import Upload
from app.domain.documents.upload import UploadService
from app.domain.tenants.records import Role
from app.jobs import Job
from app.main import create_app
from tests.api.conftest import Connect
from tests.api.documents import queued_jobs, upload_text
from tests.factories import Tenancy

Part = tuple[str, tuple[str, bytes, str]]


def part(filename: str, content: bytes | None = None, media_type: str = "text/plain") -> Part:
    """A file of a form; without `content`, one whose bytes no other name has."""
    return ("files", (filename, f"text of {filename}".encode() if content is None else content, media_type))


def stored_files(container: Container, tenancy: Tenancy) -> list[Path]:
    folder = Path(container.settings.blob_url.removeprefix("file://")) / str(tenancy.tenant_id)
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace()


@pytest.fixture
def url(workspace_id: WorkspaceId) -> str:
    return f"/v1/workspaces/{workspace_id}/documents"


async def test_many_files_become_documents_in_order(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post(
        url, files=[part("a.txt"), part("b.md"), part("c.csv")], data={"metadata": '{"source": "wiki"}'}
    )
    assert response.status_code == 202
    documents = response.json()["documents"]
    assert [document["filename"] for document in documents] == ["a.txt", "b.md", "c.csv"]
    assert [document["media_type"] for document in documents] == ["text/plain", "text/markdown", "text/csv"]
    assert all(document["metadata"] == {"source": "wiki"} for document in documents)
    assert all(document["status"] == "processing" for document in documents)
    for document in documents:
        assert (await client.get(document["links"]["self"])).json() | {"duplicate": False} == document
    listed = (await client.get(url)).json()["items"]
    assert [document["filename"] for document in listed] == ["c.csv", "b.md", "a.txt"]  # newest first


async def test_one_document_is_where_location_says(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post(url, files=[part("a.txt")])
    assert response.headers["location"] == response.json()["documents"][0]["links"]["self"]


async def test_files_of_one_name_are_told_apart_by_their_folders(client: httpx.AsyncClient, url: str) -> None:
    names = ["docs/a/readme.md", "docs/b/readme.md"]
    documents = (await client.post(url, files=[part(name) for name in names])).json()["documents"]
    assert [document["filename"] for document in documents] == names
    assert [document["title"] for document in documents] == ["readme.md", "readme.md"]
    assert len({document["id"] for document in documents}) == 2


async def test_titles_are_given_per_file(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post(url, files=[part("a.txt"), part("b.txt")], data={"titles": '["First", "Second"]'})
    assert [document["title"] for document in response.json()["documents"]] == ["First", "Second"]


async def test_the_original_comes_back_unchanged(client: httpx.AsyncClient, url: str) -> None:
    content = bytes(range(256)) * 3000
    response = await client.post(url, files=[part("big.pdf", b"%PDF-1.7\n" + content, "application/pdf")])
    found = await client.get(response.json()["documents"][0]["links"]["content"])
    assert found.content == b"%PDF-1.7\n" + content
    assert found.headers["content-type"] == "application/pdf"
    assert found.headers["content-disposition"] == 'attachment; filename="big.pdf"'
    assert found.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("filename", "disposition"),
    [
        ('a"b\\c.txt', 'attachment; filename="c.txt"'),
        ("../../etc/passwd.txt", 'attachment; filename="passwd.txt"'),
        ("手册 1.txt", "attachment; filename=\"__ 1.txt\"; filename*=UTF-8''%E6%89%8B%E5%86%8C%201.txt"),
    ],
)
async def test_a_download_never_carries_a_dangerous_name(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, filename: str, disposition: str
) -> None:
    document = await upload_text(client, workspace_id, filename=filename)
    assert document["filename"] == filename
    found = await client.get(document["links"]["content"])
    assert found.headers["content-disposition"] == disposition


async def test_text_becomes_a_document(client: httpx.AsyncClient, workspace_id: WorkspaceId) -> None:
    document = await upload_text(client, workspace_id, "# Größe", title="Maße", media_type="text/markdown")
    assert (document["title"], document["filename"]) == ("Maße", "Maße.md")
    found = await client.get(document["links"]["content"])
    assert found.content.decode() == "# Größe"
    assert found.headers["content-type"] == "text/markdown; charset=utf-8"


async def test_empty_and_blank_originals_are_taken_in(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post(url, files=[part("empty.txt", b""), part("blank.txt", b"  \n ")])
    assert response.status_code == 202
    empty = response.json()["documents"][0]
    assert empty["size_bytes"] == 0
    assert (await client.get(empty["links"]["content"])).content == b""


async def test_each_document_is_queued_once_after_the_commit(
    client: httpx.AsyncClient, container: Container, url: str
) -> None:
    await container.redis.delete("ingest")
    documents = (await client.post(url, files=[part("a.txt"), part("b.txt")])).json()["documents"]
    jobs = await queued_jobs(container.redis, "ingest")
    assert {name for name, _ in jobs} == {"ingestion.process_version"}
    assert sorted(payload["version_id"] for _, payload in jobs) == sorted(
        document["version"]["id"] for document in documents
    )


async def test_a_broker_that_is_away_loses_no_document(
    container: Container, tenancy: Tenancy, workspace_id: WorkspaceId
) -> None:
    broken = CeleryPublisher("redis://127.0.0.1:1/0")
    database = Database(container.settings.database_url.get_secret_value(), pool_size=1, publish=broken.publish)
    service = UploadService(database, container.blobs, max_upload_bytes=100)

    async def content() -> AsyncIterator[bytes]:
        yield b"text"

    upload = Upload("t", "t.txt", None, 4, b"text", content)
    [uploaded] = await service.upload(tenancy.tenant_id, workspace_id, [upload], {})
    await database.close()
    broken.close()
    assert uploaded.record.status == "processing"


async def test_no_object_is_left_when_the_rows_cannot_be_written(
    container: Container, tenancy: Tenancy, workspace_id: WorkspaceId
) -> None:
    service = UploadService(container.database, container.blobs, max_upload_bytes=100)

    async def content() -> AsyncIterator[bytes]:
        yield b"text"

    upload = Upload("t", "t.txt", None, 4, b"text", content)
    with pytest.raises(DBAPIError) as refused:  # Postgres stores no such character; the routes refuse it before
        await service.upload(tenancy.tenant_id, workspace_id, [upload], {"a": "their words\x00"})
    assert "their words" not in str(refused.value)
    assert stored_files(container, tenancy) == []


async def test_an_upload_that_is_cut_off_after_its_commit_keeps_its_original(
    container: Container, tenancy: Tenancy, workspace_id: WorkspaceId
) -> None:
    async def cut_off(_: Sequence[Job]) -> None:
        raise asyncio.CancelledError

    database = Database(container.settings.database_url.get_secret_value(), pool_size=1, publish=cut_off)
    service = UploadService(database, container.blobs, max_upload_bytes=100)

    async def content() -> AsyncIterator[bytes]:
        yield b"text"

    with pytest.raises(asyncio.CancelledError):
        await service.upload(tenancy.tenant_id, workspace_id, [Upload("t", "t.txt", None, 4, b"text", content)], {})
    await database.close()
    assert [path.read_bytes() for path in stored_files(container, tenancy)] == [b"text"]


@pytest.mark.parametrize(
    ("files", "data", "field"),
    [
        ([], {"metadata": "{}"}, "body.files"),
        ([("file", ("a.txt", b"x", "text/plain"))], {}, "body.file"),
        ([part("a.txt")], {"files": "text"}, "body.files"),
        ([part("a.txt")], {"colour": "red"}, "body.colour"),
        ([part("a.txt")], {"metadata": "{"}, "body.metadata"),
        ([part("a.txt")], {"metadata": "[1]"}, "body.metadata"),
        ([part("a.txt")], {"metadata": '{"a": "x\\u0000y"}'}, "body.metadata"),
        ([part("a.txt")], {"metadata": '{"a\\u0007": 1}'}, "body.metadata"),
        ([part("a.txt")], {"metadata": '{"a": NaN}'}, "body.metadata"),
        ([part("a.txt")], {"metadata": '{"a": 1e999}'}, "body.metadata"),
        ([part("a.txt")], {"metadata": '{"a": "\\ud800"}'}, "body.metadata"),
        ([part("a.txt")], {"metadata": json.dumps({"a": "x" * 20_000})}, "body.metadata"),
        ([part("a.txt")], {"metadata": '{"a":{"b":{"c":{"d":{"e":{"f":1}}}}}}'}, "body.metadata"),
        ([part("a.txt")], {"titles": '["a", "b"]'}, "body.titles"),
        ([part("a.txt")], {"titles": '["a\\u0000"]'}, "body.titles.0"),
        ([part("x" * 2000 + ".txt")], {}, "body.files.0.filename"),
    ],
)
async def test_a_form_that_is_not_right_is_refused_by_field(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, url: str,
    files: list[Part], data: dict[str, str], field: str,
) -> None:  # fmt: skip
    if not files:
        body = b'--b\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n{}\r\n--b--\r\n'
        response = await client.post(url, content=body, headers={"content-type": "multipart/form-data; boundary=b"})
    else:
        response = await client.post(url, files=files, data=data)
    assert (response.status_code, response.json()["code"]) == (422, "validation_error"), response.text
    assert response.json()["errors"][0]["field"] == field
    assert stored_files(container, tenancy) == []


@pytest.mark.parametrize(
    "body",
    [
        {"title": "a\x00", "text": "x"},
        {"title": "a", "text": "x", "metadata": {"k": "\x00"}},
        {"title": "a", "text": "x", "filename": "a\nb"},
        {"title": "a"},
        {"title": "a", "text": "x", "extra": 1},
        {"title": "a", "text": "x", "media_type": "application/pdf"},
        ["a"],
    ],
)
async def test_a_text_that_is_not_right_is_refused(client: httpx.AsyncClient, url: str, body: Any) -> None:
    response = await client.post(url, json=body)
    assert (response.status_code, response.json()["code"]) == (422, "validation_error")


async def test_one_wrong_type_refuses_the_whole_request_and_names_the_file(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, url: str
) -> None:
    response = await client.post(
        url, files=[part("good.txt"), part("bad.exe", b"MZ\x90\x00", "application/x-msdownload")]
    )
    problem = response.json()
    assert (response.status_code, problem["code"]) == (415, "unsupported_media_type")
    assert problem["filename"] == "bad.exe"
    assert {".pdf", ".docx", ".json"} <= set(problem["accepted"])
    assert stored_files(container, tenancy) == []
    assert (await client.get(url)).json()["items"] == []


@pytest.mark.parametrize("media_type", ["text/plain", "application/xml", ""])
async def test_another_content_type_is_415(client: httpx.AsyncClient, url: str, media_type: str) -> None:
    response = await client.post(url, content=b"x", headers={"content-type": media_type})
    assert response.status_code == 415
    assert response.json()["accepted"] == ["multipart/form-data", "application/json"]


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"--b\r\n\r\n", b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--"]
)
async def test_a_broken_form_is_a_clear_refusal(client: httpx.AsyncClient, url: str, body: bytes) -> None:
    response = await client.post(url, content=body, headers={"content-type": "multipart/form-data; boundary=b"})
    assert response.status_code in (400, 422)
    assert response.headers["content-type"] == "application/problem+json"


async def test_what_is_too_large_is_413_and_the_limit_is_told(
    container: Container, connect: Connect, tenancy: Tenancy, url: str
) -> None:
    limits = container.settings.model_copy(
        update={"max_upload_bytes": 1000, "max_request_bytes": 5000, "max_files_per_request": 2}
    )
    app = create_app(replace(container, settings=limits))
    token = (await connect(tenancy)).headers["authorization"]
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://trellis", headers={"Authorization": token}
        ) as client:
            file = await client.post(url, files=[part("ok.txt"), part("big.txt", b"x" * 1001)])
            assert (file.status_code, file.json()["code"], file.json()["limit_bytes"]) == (413, "file_too_large", 1000)
            assert file.json()["filename"] == "big.txt"
            request = await client.post(url, files=[part("big.txt", b"x" * 6000)])
            assert (request.status_code, request.json()["limit_bytes"]) == (413, 5000)
            many = await client.post(url, files=[part(f"{number}.txt") for number in range(3)])
            assert (many.status_code, many.json()["code"], many.json()["limit_files"]) == (413, "too_many_files", 2)
            text = await client.post(url, json={"title": "t", "text": "x" * 2000})
            assert (text.status_code, text.json()["limit_bytes"]) == (413, 1000)
            assert (await client.post(url, files=[part("ok.txt", b"x" * 1000)])).status_code == 202
    assert len(stored_files(container, tenancy)) == 1


async def test_readers_upload_nothing_and_strangers_find_nothing(
    connect: Connect, stranger: httpx.AsyncClient, tenancy: Tenancy, url: str
) -> None:
    reader = await connect(tenancy, Role.READER)
    assert (await reader.post(url, files=[part("a.txt")])).json()["code"] == "role_required"
    refused = await stranger.post(url, files=[part("a.txt")])
    assert (refused.status_code, refused.json()["code"]) == (404, "workspace_not_found")


async def test_an_unknown_caller_is_refused_before_the_body_is_read(anonymous: httpx.AsyncClient, url: str) -> None:
    read: list[bytes] = []

    async def body() -> AsyncIterator[bytes]:
        for _ in range(3):
            read.append(b"x")
            yield b"x"

    response = await anonymous.post(url, content=body(), headers={"content-type": "multipart/form-data; boundary=b"})
    assert response.status_code == 401
    assert read == []


async def test_a_workspace_that_is_not_there_is_404(client: httpx.AsyncClient) -> None:
    response = await client.post(f"/v1/workspaces/{UUID(int=1)}/documents", json={"title": "t", "text": "x"})
    assert (response.status_code, response.json()["code"]) == (404, "workspace_not_found")
