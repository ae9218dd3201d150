"""A new content for a document: the old one answers until the new one is indexed, engine by engine."""

import asyncio
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.bootstrap import Container, Worker
from app.db.base import WorkspaceId
from app.db.provision import DatabaseUrls
from app.domain.tenants.records import Role
from app.jobs import IndexGraph, ProcessVersion, PurgeGraphVersion
from tests.api.conftest import Connect, Index
from tests.api.documents import queued_jobs, set_state, upload_text
from tests.api.test_duplicates import stored_files
from tests.factories import Tenancy
from tests.workers.uploads import Uploads
from workers.task import attempt

OLD = "Captain Ada Moreau commands the Tonnberg in Port Lindau."
NEW = "Captain Ada Moreau commands the Seeadler in Port Lindau."
READY = {"state": "ready", "stage": "done"}


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=("lazy", "graph"))


@pytest.fixture
async def document(client: httpx.AsyncClient, workspace_id: WorkspaceId) -> Any:
    return await upload_text(client, workspace_id, OLD, metadata={"shift": 1})


async def replace(client: httpx.AsyncClient, document: Any, text: str = NEW, **body: Any) -> Any:
    response = await client.put(document["links"]["content"], json={"text": text, **body})
    assert response.status_code == 202, response.text
    return response.json()


async def contexts(client: httpx.AsyncClient, workspace_id: WorkspaceId, mode: str) -> str:
    response = await client.post(
        f"/v1/workspaces/{workspace_id}/query", json={"query": "Which ship does Ada Moreau command?", "mode": mode}
    )
    assert response.status_code == 200, response.text
    found: str = response.json()["context"]
    return found


def jobs_of(document: Any, tenancy: Tenancy) -> tuple[ProcessVersion, IndexGraph, PurgeGraphVersion]:
    ids = (tenancy.tenant_id, UUID(document["workspace_id"]), UUID(document["version"]["id"]))
    return ProcessVersion(*ids), IndexGraph(*ids), PurgeGraphVersion(*ids)


async def test_a_new_content_makes_the_next_version(
    client: httpx.AsyncClient, container: Container, document: Any
) -> None:
    await container.redis.delete("ingest")
    response = await client.put(document["links"]["content"], json={"text": NEW})
    found = response.json()
    assert (response.status_code, found["unchanged"], found["status"]) == (202, False, "processing")
    assert response.headers["location"] == document["links"]["self"]
    assert (found["id"], found["version"]["ordinal"]) == (document["id"], 2)
    assert (found["title"], found["filename"], found["metadata"]) == ("Some title", "Some title.txt", {"shift": 1})
    assert (await client.get(document["links"]["content"])).text == NEW
    [(_, payload)] = await queued_jobs(container.redis, "ingest")
    assert payload["version_id"] == found["version"]["id"]


async def test_a_file_brings_its_name_and_what_is_sent_with_it(client: httpx.AsyncClient, document: Any) -> None:
    response = await client.put(
        document["links"]["content"],
        files=[("files", ("docs/new.md", NEW.encode(), "text/markdown"))],
        data={"titles": '["New title"]', "metadata": '{"a": 1}'},
    )
    found = response.json()
    assert (found["title"], found["filename"], found["metadata"]) == ("New title", "docs/new.md", {"a": 1})
    assert found["media_type"] == "text/markdown"
    kept = await client.put(
        document["links"]["content"], files=[("files", ("docs/new.md", b"Other.", "text/markdown"))]
    )
    assert (kept.json()["title"], kept.json()["metadata"]) == ("New title", {"a": 1})


async def test_a_text_in_the_place_of_a_file_gets_a_name_that_fits(client: httpx.AsyncClient, document: Any) -> None:
    await client.put(document["links"]["content"], files=[("files", ("a.b/hand book.pdf", b"%PDF-1.7\n", ""))])
    assert (await replace(client, document, media_type="text/markdown"))["filename"] == "a.b/hand book.md"


async def test_the_same_bytes_make_no_version(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, document: Any
) -> None:
    response = await client.put(document["links"]["content"], json={"text": OLD, "title": "Another title"})
    assert (response.status_code, response.json()["unchanged"]) == (200, True)
    assert (response.json()["version"], response.json()["title"]) == (document["version"], "Another title")
    assert len(stored_files(container, tenancy)) == 1


async def test_replaced_bytes_are_no_duplicate_any_more(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, document: Any
) -> None:
    await replace(client, document)
    url = f"/v1/workspaces/{workspace_id}/documents"
    known = await client.post(url, json={"title": "t", "text": NEW})
    assert (known.status_code, known.json()["documents"][0]["id"]) == (200, document["id"])
    assert (await client.post(url, json={"title": "t", "text": OLD})).status_code == 202


async def test_each_engine_answers_from_the_old_content_until_it_has_the_new_one(
    client: httpx.AsyncClient,
    tenancy: Tenancy,
    worker: Worker,
    urls: DatabaseUrls,
    index: Index,
    workspace_id: WorkspaceId,
    document: Any,
) -> None:
    """C32. At no moment does anybody find both contents, or neither."""
    await index(tenancy, document)
    new = await replace(client, document)
    process, index_graph, _ = jobs_of(new, tenancy)
    assert "Tonnberg" in await contexts(client, workspace_id, "lazy")
    await attempt(worker.jobs, process, runs=1)
    assert "Seeadler" in await contexts(client, workspace_id, "lazy")
    assert "Tonnberg" in await contexts(client, workspace_id, "mix")
    other = await upload_text(client, workspace_id, "\n\n".join(f"Person{n} met Ben in Ulm{n}." for n in range(200)))
    await attempt(worker.jobs, jobs_of(other, tenancy)[0], runs=1)
    works = [
        asyncio.create_task(attempt(worker.jobs, job, runs=1)) for job in (jobs_of(other, tenancy)[1], index_graph)
    ]
    seen = []
    while not all(work.done() for work in works):
        found = await contexts(client, workspace_id, "mix")
        seen.append(("Tonnberg" in found, "Seeadler" in found))
    assert set(seen) <= {(True, False), (False, True)}
    found = await contexts(client, workspace_id, "mix")
    assert ("Tonnberg" in found, "Seeadler" in found) == (False, True)
    # Removed with the insert, not by the purge that follows: the graph's unit took both.
    uploads = Uploads(tenancy.database, worker.container.blobs, tenancy.tenant_id)
    rows = (await uploads.engine_text(workspace_id, urls.engine)).splitlines()
    named = [row for row in rows if document["version"]["id"] in row]
    assert [row for row in named if ",extract," not in row] == []  # cached answers wait for the purge
    await attempt(worker.jobs, jobs_of(document, tenancy)[2], runs=1)
    assert document["version"]["id"] not in await uploads.engine_text(workspace_id, urls.engine)
    assert await uploads.scalar("SELECT count(*) FROM versions WHERE document_id = :id", id=UUID(document["id"])) == 1


async def test_a_content_that_fails_leaves_the_old_one_answering(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index, workspace_id: WorkspaceId, document: Any
) -> None:
    await index(tenancy, document)
    broken = await replace(client, document, "   ")
    await index(tenancy, broken)
    found = (await client.get(document["links"]["self"])).json()
    assert (found["status"], found["engines"]["lazy"]["error"]["code"]) == ("failed", "blank_document")
    assert "lazy" in found["queryable_modes"]
    for mode in ("lazy", "mix"):
        assert "Tonnberg" in await contexts(client, workspace_id, mode)
    again = await replace(client, document)
    await index(tenancy, again)
    assert (await client.get(document["links"]["self"])).json()["status"] == "ready"


async def test_work_on_a_version_that_is_replaced_is_called_off(
    client: httpx.AsyncClient, tenancy: Tenancy, document: Any
) -> None:
    await set_state(tenancy, document, "lazy", state="running", lease_owner="somebody")
    await replace(client, document)
    uploads = Uploads(tenancy.database, None, tenancy.tenant_id)  # type: ignore[arg-type]
    states = await uploads.scalar(
        "SELECT array_agg(DISTINCT state) FROM index_states WHERE version_id = :id", id=UUID(document["version"]["id"])
    )
    assert states == ["cancelled"]


async def test_replacements_at_once_are_versions_one_after_another(client: httpx.AsyncClient, document: Any) -> None:
    found = await asyncio.gather(*(replace(client, document, f"Text {n}.") for n in range(4)))
    assert sorted(each["version"]["ordinal"] for each in found) == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        ({"json": {"title": "x"}}, 422, "validation_error"),
        ({"json": {"text": "x", "colour": 1}}, 422, "validation_error"),
        ({"files": [("files", ("a.exe", b"MZ", "application/x-msdownload"))]}, 415, "unsupported_media_type"),
        ({"files": [("files", ("a.txt", b"1", "")), ("files", ("b.txt", b"2", ""))]}, 413, "too_many_files"),
        ({"content": b"x", "headers": {"content-type": "text/plain"}}, 415, "unsupported_media_type"),
    ],
)
async def test_a_content_that_is_not_right_is_refused(
    client: httpx.AsyncClient, document: Any, request_: Any, status: int, code: str
) -> None:
    response = await client.put(document["links"]["content"], **request_)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert (await client.get(document["links"]["self"])).json()["version"] == document["version"]


async def test_who_may_not_replace(
    client: httpx.AsyncClient, connect: Connect, stranger: httpx.AsyncClient, tenancy: Tenancy, document: Any
) -> None:
    reader = await connect(tenancy, Role.READER)
    link = document["links"]["content"]
    assert (await reader.put(link, json={"text": "x"})).json()["code"] == "role_required"
    assert (await stranger.put(link, json={"text": "x"})).status_code == 404
    await client.delete(document["links"]["self"])
    assert (await client.put(link, json={"text": "x"})).json()["code"] == "document_deleting"
