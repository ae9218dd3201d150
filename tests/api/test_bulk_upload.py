"""Many documents in one request: each is taken in by itself, as it is read."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.bootstrap import Container
from app.db.base import WorkspaceId
from app.domain.tenants.records import Role
from app.main import create_app
from tests.api.conftest import Connect
from tests.api.test_limits import give_plan
from tests.factories import Tenancy

BOUNDARY = "a-boundary-0123456789"
FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
MANIFEST = {"content-type": "application/x-ndjson"}


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace()


@pytest.fixture
def documents(workspace_id: WorkspaceId) -> str:
    return f"/v1/workspaces/{workspace_id}/documents"


@pytest.fixture
def url(documents: str) -> str:
    return f"{documents}/bulk"


def part(filename: str, content: bytes, name: str = "files") -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\n\r\n'
    return head.encode() + content + b"\r\n"


def field(name: str, content: str) -> bytes:
    return f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{content}\r\n'.encode()


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def manifest(*lines: dict[str, Any] | str) -> bytes:
    return "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()


async def in_pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def summary(found: Any) -> list[tuple[str, str | None, str | None]]:
    return [
        (each["status"], each["filename"], each["problem"]["code"] if each["problem"] else None)
        for each in found["results"]
    ]


async def test_every_file_has_a_result_of_its_own(client: httpx.AsyncClient, documents: str, url: str) -> None:
    await client.post(documents, json={"title": "t", "text": "known"})
    body = form(
        field("metadata", '{"source": "crm"}'),
        part("a.txt", b"first"),
        part("b.exe", b"MZ\x90\x00"),
        part("", b"nameless"),
        part("docs/c.md", b"known"),
        part("d.txt", b"second", name="file"),
        field("colour", "red"),
        part("e.txt", b"first"),
    )
    response = await client.post(url, content=body, headers=FORM)
    found = response.json()
    assert (response.status_code, found["accepted"], found["duplicates"], found["refused"]) == (207, 1, 2, 4)
    assert summary(found) == [
        ("accepted", "a.txt", None),
        ("refused", "b.exe", "unsupported_media_type"),
        ("refused", None, "validation_error"),
        ("duplicate", "docs/c.md", None),
        ("refused", None, "validation_error"),
        ("refused", None, "validation_error"),
        ("duplicate", "e.txt", None),
    ]
    assert [each["index"] for each in found["results"]] == list(range(7))
    assert found["results"][0]["document_id"] == found["results"][6]["document_id"]
    assert found["results"][1]["problem"]["request_id"] == response.headers["x-request-id"]
    made = (await client.get(found["results"][0]["link"])).json()
    assert (made["title"], made["metadata"], made["status"]) == ("a.txt", {"source": "crm"}, "processing")
    assert len((await client.get(documents)).json()["items"]) == 2


async def test_a_manifest_names_its_texts(client: httpx.AsyncClient, documents: str, url: str) -> None:
    body = manifest(
        {"ref": "crm-1", "title": "One", "text": "first", "metadata": {"n": 1}},
        "{broken",
        "",
        {"ref": "crm-3", "title": "Three"},
        {"ref": "crm-4", "title": "Four", "text": "<p>x</p>", "media_type": "text/html"},
    )
    response = await client.post(url, content=body, headers=MANIFEST)
    found = response.json()
    assert summary(found) == [
        ("accepted", "One.txt", None),
        ("refused", None, "validation_error"),
        ("refused", None, "validation_error"),
        ("accepted", "Four.html", None),
    ]
    assert [each["ref"] for each in found["results"]] == ["crm-1", None, None, "crm-4"]
    assert found["results"][2]["problem"]["errors"][0]["field"] == "body.2.text"
    listed = (await client.get(documents, params={"metadata": '{"n": 1}'})).json()["items"]
    assert [each["title"] for each in listed] == ["One"]


@pytest.mark.parametrize("size", [1, 13, 1000])
async def test_it_does_not_matter_how_a_body_is_cut(client: httpx.AsyncClient, url: str, size: int) -> None:
    files = form(part("a.txt", b"first\r\n--not"), part("b.txt", b""), part("c.txt", b"\r\nthird"))
    found = (await client.post(url, content=in_pieces(files, size), headers=FORM)).json()
    assert summary(found) == [("accepted", name, None) for name in ("a.txt", "b.txt", "c.txt")]
    content = await client.get(f"{found['results'][0]['link']}/content")
    assert content.content == b"first\r\n--not"
    lines = manifest(*({"title": f"t{n}", "text": f"text {n}"} for n in range(5))) + b"\n"
    found = (await client.post(url, content=in_pieces(lines, size), headers=MANIFEST)).json()
    assert found["accepted"] == 5


@pytest.mark.timeout(120)
async def test_five_hundred_files_are_stored_while_they_are_read(
    client: httpx.AsyncClient, container: Container, documents: str, url: str
) -> None:
    """The last parts are not sent before the first are documents: nothing waits for the whole request."""
    seen = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        for number in range(499):
            yield part(f"{number}.txt", f"Text number {number}.".encode())
            if number == 250:
                listed = await client.get(documents)
                assert len(listed.json()["items"]) == 50
                seen.set()
        yield form(part("bad.exe", b"MZ\x90\x00"))

    found = (await client.post(url, content=body(), headers=FORM)).json()
    assert seen.is_set()
    assert (found["accepted"], found["duplicates"], found["refused"]) == (499, 0, 1)
    assert len({each["document_id"] for each in found["results"]}) == 500


async def test_limits_are_told(container: Container, connect: Connect, tenancy: Tenancy, url: str) -> None:
    limits = container.settings.model_copy(
        update={"max_upload_bytes": 1000, "max_bulk_bytes": 50_000, "max_files_per_bulk": 3}
    )
    app = create_app(replace(container, settings=limits))
    token = (await connect(tenancy)).headers["authorization"]
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://trellis", headers={"Authorization": token}
        ) as client:
            body = form(part("big.txt", b"x" * 1001), part("ok.txt", b"x" * 1000))
            found = (await client.post(url, content=body, headers=FORM)).json()
            assert summary(found) == [("refused", "big.txt", "file_too_large"), ("accepted", "ok.txt", None)]
            lines = manifest({"title": "a", "text": "x" * 2_000_000}, {"title": "b", "text": "y"})
            too_large = await client.post(url, content=lines, headers=MANIFEST)
            assert (too_large.status_code, too_large.json()["limit_bytes"]) == (413, 50_000)
            assert too_large.json()["results"] == []  # its length was declared: nothing was read
            growing = manifest(*({"title": str(n), "text": str(n) * 900} for n in range(3)), {"title": "x" * 50_000})
            too_large = await client.post(url, content=in_pieces(growing, 500), headers=MANIFEST)
            assert (too_large.status_code, too_large.json()["code"]) == (413, "too_large")
            assert summary(too_large.json()) == [("accepted", f"{n}.txt", None) for n in range(3)]


async def test_of_too_many_the_first_are_taken_in_and_named(
    container: Container, connect: Connect, tenancy: Tenancy, documents: str, url: str
) -> None:
    app = create_app(replace(container, settings=container.settings.model_copy(update={"max_files_per_bulk": 3})))
    token = (await connect(tenancy)).headers["authorization"]
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        for number in range(5):
            yield manifest({"ref": f"crm-{number}", "title": str(number), "text": f"text {number}"}) + b"\n"
            read += 1

    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://trellis", headers={"Authorization": token}
        ) as client:
            refused = await client.post(url, content=body(), headers=MANIFEST)
            found = refused.json()
            assert (refused.status_code, found["code"], found["limit_files"]) == (413, "too_many_files", 3)
            assert (found["accepted"], read) == (3, 5)
            assert [each["ref"] for each in found["results"]] == ["crm-0", "crm-1", "crm-2"]
            assert "last 2" in found["detail"]
            listed = (await client.get(documents)).json()["items"]
            assert {each["id"] for each in listed} == {each["document_id"] for each in found["results"]}


async def test_a_body_that_breaks_off_tells_what_was_taken_in(client: httpx.AsyncClient, url: str) -> None:
    body = form(part("a.txt", b"first"), part("b.txt", b"cut off"))[:-30]
    response = await client.post(url, content=body, headers=FORM)
    assert (response.status_code, response.json()["code"]) == (400, "bad_request")
    assert summary(response.json()) == [("accepted", "a.txt", None)]


@pytest.mark.parametrize("between", ["\n\n", "\r\n", "\n \t\r\n", "\n\n\n"])
async def test_blank_lines_are_no_documents(client: httpx.AsyncClient, url: str, between: str) -> None:
    lines = [*(json.dumps({"title": f"t{n}", "text": f"text {n}"}) for n in range(2)), '{"title": "t2"}']
    body = f"{between}{between.join(lines)}{between}".encode()
    found = (await client.post(url, content=body, headers=MANIFEST)).json()
    assert [each["index"] for each in found["results"]] == [0, 1, 2]
    assert summary(found)[:2] == [("accepted", "t0.txt", None), ("accepted", "t1.txt", None)]
    assert found["results"][2]["problem"]["errors"][0]["field"] == "body.2.text"


@pytest.mark.parametrize("body", [b"", b"\n", b" \r\n\n"])
async def test_a_manifest_without_a_line_is_refused(client: httpx.AsyncClient, url: str, body: bytes) -> None:
    response = await client.post(url, content=body, headers=MANIFEST)
    assert (response.status_code, response.json()["code"]) == (422, "validation_error")


async def test_a_line_that_is_too_long_does_not_stop_the_others(
    container: Container, connect: Connect, tenancy: Tenancy, url: str
) -> None:
    app = create_app(replace(container, settings=container.settings.model_copy(update={"max_upload_bytes": 1000})))
    token = (await connect(tenancy)).headers["authorization"]
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://trellis", headers={"Authorization": token}
        ) as client:
            lines = manifest({"title": "a", "text": "x" * 2_000_000}, {"title": "b", "text": "y"})
            found = (await client.post(url, content=in_pieces(lines, 60_000), headers=MANIFEST)).json()
    assert summary(found) == [("refused", None, "file_too_large"), ("accepted", "b.txt", None)]


async def test_a_repetition_with_a_key_is_not_carried_out(client: httpx.AsyncClient, documents: str, url: str) -> None:
    body = form(part("a.txt", b"first"))
    first = await client.post(url, content=body, headers=FORM | {"Idempotency-Key": "k"})
    other = re.sub(BOUNDARY.encode(), b"another-boundary-9876", body)
    headers = {"content-type": "multipart/form-data; boundary=another-boundary-9876", "Idempotency-Key": "k"}
    again = await client.post(url, content=other, headers=headers)
    assert (again.status_code, again.json()) == (207, first.json())
    assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"content": b"x", "headers": {"content-type": "application/json"}}, 415),
        ({"content": b"nonsense", "headers": FORM}, 400),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data"}}, 400),
        ({"content": b"", "headers": FORM}, 400),
        ({"content": form(part("a.txt", b"cut off"))[:-5], "headers": FORM}, 400),
        ({"content": form(field("metadata", "{")), "headers": FORM}, 422),
        ({"content": form(), "headers": FORM, "params": {"duplicate": "x"}}, 422),
    ],
)
async def test_a_body_that_cannot_be_read_is_a_problem(
    client: httpx.AsyncClient, url: str, options: Any, status: int
) -> None:
    response = await client.post(url, **options)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"


async def test_who_may_not_upload(connect: Connect, stranger: httpx.AsyncClient, tenancy: Tenancy, url: str) -> None:
    reader = await connect(tenancy, Role.READER)
    body = {"content": form(part("a.txt", b"x")), "headers": FORM}
    assert (await reader.post(url, **body)).json()["code"] == "role_required"  # type: ignore[arg-type]
    assert (await stranger.post(url, **body)).status_code == 404  # type: ignore[arg-type]


async def test_a_plan_that_is_used_up_refuses_files_one_by_one(
    client: httpx.AsyncClient, tenancy: Tenancy, url: str
) -> None:
    await give_plan(tenancy, documents=1)
    body = form(part("a.txt", b"first"), part("b.txt", b"second"), part("c.txt", b"first"))
    found = (await client.post(url, content=body, headers=FORM)).json()
    assert summary(found) == [
        ("accepted", "a.txt", None),
        ("refused", "b.txt", "quota_exceeded"),
        ("duplicate", "c.txt", None),
    ]
