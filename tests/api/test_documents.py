"""Documents after their upload: polling, lists, changes, retry, deletion, reindex and passages."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import select, text

from app.bootstrap import Container
from app.db.base import TenantId, WorkspaceId
from app.db.models import Chunk, CorpusVersion, Version
from app.domain.tenants.records import Role
from app.retrieval.contract import GRAPH_MODES, MODES, WorkspaceRef
from app.retrieval.store.passages import StoredVersion, insert_passages
from app.text.passages import PassageDraft
from tests.api.conftest import Connect, Index
from tests.api.documents import queued_jobs, set_state, upload_text
from tests.factories import Tenancy

READY = {"state": "ready", "stage": "done"}
FAILED = {"state": "failed", "error_code": "no_text_layer", "error_detail": "The PDF has no text layer."}
LAZY = [mode for mode in MODES if mode not in GRAPH_MODES]


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=("lazy", "graph"))


@pytest.fixture
def url(workspace_id: WorkspaceId) -> str:
    return f"/v1/workspaces/{workspace_id}/documents"


@pytest.fixture
async def document(client: httpx.AsyncClient, workspace_id: WorkspaceId) -> Any:
    return await upload_text(client, workspace_id)


async def read(client: httpx.AsyncClient, document: Any, **params: Any) -> Any:
    response = await client.get(document["links"]["self"], params=params)
    assert response.status_code == 200, response.text
    return response.json()


async def corpus_version(tenancy: Tenancy, workspace_id: WorkspaceId) -> int:
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        found = await session.scalar(select(CorpusVersion.version).where(CorpusVersion.workspace_id == workspace_id))
    assert found is not None
    return found


async def test_each_engine_becomes_queryable_by_itself(
    client: httpx.AsyncClient, tenancy: Tenancy, document: Any
) -> None:
    assert (document["status"], document["queryable_modes"]) == ("processing", [])
    await set_state(tenancy, document, "lazy", **READY)
    half = await read(client, document)
    assert (half["status"], half["queryable_modes"]) == ("processing", LAZY)
    await set_state(tenancy, document, "graph", **READY)
    whole = await read(client, document)
    assert (whole["status"], set(whole["queryable_modes"])) == ("ready", set(MODES))


async def test_polling_shows_how_far_and_at_what_cost(
    client: httpx.AsyncClient, tenancy: Tenancy, document: Any
) -> None:
    await set_state(tenancy, document, "lazy", **READY)
    await set_state(
        tenancy, document, "graph", state="running", stage="extracting", attempts=2, chunks_done=3, chunks_total=7,
        stage_ms={"extract": 812.5}, model_calls=4, tokens_in=900, tokens_out=120, started_at=datetime.now(UTC),
    )  # fmt: skip
    response = await client.get(document["links"]["self"])
    graph = response.json()["engines"]["graph"]
    assert (graph["state"], graph["stage"], graph["attempts"]) == ("running", "extracting", 2)
    assert (graph["chunks_done"], graph["chunks_total"], graph["stage_ms"]) == (3, 7, {"extract": 812.5})
    assert (graph["model_calls"], graph["tokens_in"], graph["tokens_out"]) == (4, 900, 120)
    assert int(response.headers["retry-after"]) > 0


async def test_a_failure_shows_its_code_and_a_sentence(
    client: httpx.AsyncClient, tenancy: Tenancy, document: Any
) -> None:
    for engine in ("lazy", "graph"):
        await set_state(tenancy, document, engine, **FAILED)
    response = await client.get(document["links"]["self"])
    found = response.json()
    assert found["status"] == "failed"
    assert found["engines"]["lazy"]["error"] == {"code": "no_text_layer", "detail": "The PDF has no text layer."}
    assert "retry-after" not in response.headers


async def test_a_partial_graph_names_the_chunks_that_failed(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, document: Any
) -> None:
    version_id = UUID(document["version"]["id"])
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        for ordinal, state in ((0, "extracted"), (1, "failed")):
            session.add(
                Chunk(
                    tenant_id=tenancy.tenant_id, workspace_id=workspace_id, version_id=version_id, ordinal=ordinal,
                    first_passage=0, last_passage=0, tokens=9, state=state,
                    error_code="model_nonsense" if state == "failed" else None, error_detail="No entity in it.",
                )
            )  # fmt: skip
    await set_state(tenancy, document, "lazy", **READY)
    await set_state(tenancy, document, "graph", state="partial", chunks_done=1, chunks_total=2)
    found = await read(client, document)
    assert found["status"] == "partial"
    assert [(chunk["ordinal"], chunk["error_code"]) for chunk in found["failed_chunks"]] == [(1, "model_nonsense")]
    assert found["queryable_modes"] == LAZY


async def test_waiting_ends_when_the_status_is_final(
    client: httpx.AsyncClient, tenancy: Tenancy, document: Any
) -> None:
    waiting = asyncio.create_task(read(client, document, wait=50))
    await asyncio.sleep(0.5)
    assert not waiting.done()
    for engine in ("lazy", "graph"):
        await set_state(tenancy, document, engine, **READY)
    assert (await waiting)["status"] == "ready"


async def test_waiting_ends_with_the_time(client: httpx.AsyncClient, document: Any) -> None:
    assert (await read(client, document, wait=1))["status"] == "processing"


async def test_many_waiters_leave_connections_for_others(client: httpx.AsyncClient, document: Any) -> None:
    waiting = [asyncio.create_task(read(client, document, wait=3)) for _ in range(20)]
    await asyncio.sleep(0.3)
    assert (await client.get("/v1/me")).status_code == 200
    assert not any(task.done() for task in waiting)
    await asyncio.gather(*waiting)


@pytest.mark.parametrize("wait", ["-1", "61", "soon"])
async def test_an_unreasonable_wait_is_refused(client: httpx.AsyncClient, document: Any, wait: str) -> None:
    response = await client.get(document["links"]["self"], params={"wait": wait})
    assert response.status_code == 422


async def test_filters_narrow_the_list(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, url: str
) -> None:
    first = await upload_text(client, workspace_id, title="100% Größe", metadata={"team": "a", "year": 2026})
    second = await upload_text(client, workspace_id, title="Other", filename="x/GRÖSSE_1.txt", metadata={"team": "b"})
    for engine in ("lazy", "graph"):
        await set_state(tenancy, second, engine, **READY)

    async def found(**params: Any) -> list[str]:
        response = await client.get(url, params=params)
        assert response.status_code == 200, response.text
        return [item["id"] for item in response.json()["items"]]

    assert await found() == [second["id"], first["id"]]
    assert await found(title="0% gr") == [first["id"]]
    assert await found(title="%") == [first["id"]]
    assert await found(filename="grösse_") == [second["id"]]
    assert await found(status="ready") == [second["id"]]
    assert await found(status=["ready", "processing"]) == [second["id"], first["id"]]
    assert await found(metadata='{"team": "a"}') == [first["id"]]
    assert await found(metadata='{"team": "a", "year": 1}') == []
    assert await found(created_after=second["created_at"]) == [second["id"]]
    assert await found(created_before=second["created_at"]) == [first["id"]]


@pytest.mark.parametrize(
    "params",
    [
        {"status": "done"}, {"created_after": "yesterday"}, {"created_after": "2026-01-01T00:00:00"}, {"title": "\x00"},
        {"metadata": "[]"}, {"metadata": "x"}, {"limit": "0"}, {"limit": "1000"}, {"titel": "x"},
        {"created_after": "0001-01-01T00:00:00+14:00"}, {"created_before": "9999-12-31T23:59:59-14:00"},
    ],
)  # fmt: skip
async def test_a_filter_that_is_not_right_is_refused(
    client: httpx.AsyncClient, url: str, params: dict[str, str]
) -> None:
    assert (await client.get(url, params=params)).json()["code"] == "validation_error"


async def test_pages_hold_each_document_once(client: httpx.AsyncClient, workspace_id: WorkspaceId, url: str) -> None:
    made = [(await upload_text(client, workspace_id))["id"] for _ in range(5)]
    listed: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = (await client.get(url, params=params)).json()
        listed += [item["id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    assert listed == made[::-1]


async def test_title_and_metadata_can_be_changed(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, document: Any
) -> None:
    before = await corpus_version(tenancy, workspace_id)
    changed = await client.patch(document["links"]["self"], json={"title": "New", "metadata": {"a": [1, None]}})
    assert (changed.json()["title"], changed.json()["metadata"]) == ("New", {"a": [1, None]})
    assert await read(client, document) == changed.json()
    assert await corpus_version(tenancy, workspace_id) > before
    for body in ({"title": "a\x00"}, {"metadata": {"a": "\x01"}}, {"filename": "x"}, {"title": ""}):
        assert (await client.patch(document["links"]["self"], json=body)).json()["code"] == "validation_error"


@pytest.mark.parametrize("state", ["failed", "cancelled"])
async def test_a_retry_queues_what_did_not_end_well(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, document: Any, state: str
) -> None:
    for engine in ("lazy", "graph"):
        await set_state(tenancy, document, engine, state=state, attempts=5)
    await container.redis.delete("ingest")
    response = await client.post(f"{document['links']['self']}/retry")
    assert response.status_code == 202
    assert response.headers["location"] == document["links"]["self"]
    assert response.json()["status"] == "processing"
    assert {engine["attempts"] for engine in response.json()["engines"].values()} == {0}
    [(name, payload)] = await queued_jobs(container.redis, "ingest")
    assert (name, payload["version_id"]) == ("ingestion.process_version", document["version"]["id"])


async def test_a_retry_of_the_graph_leaves_the_lazy_index_alone(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, document: Any
) -> None:
    await set_state(tenancy, document, "lazy", **READY)
    await set_state(tenancy, document, "graph", state="failed", error_code="model_unavailable", error_detail="x")
    await container.redis.delete("graph")
    response = await client.post(f"{document['links']['self']}/retry")
    assert response.json()["engines"]["lazy"]["state"] == "ready"
    assert response.json()["engines"]["graph"]["state"] == "queued"
    assert [name for name, _ in await queued_jobs(container.redis, "graph")] == ["ingestion.index_graph"]


async def test_a_retry_of_what_is_well_or_on_its_way_is_a_conflict(
    client: httpx.AsyncClient, tenancy: Tenancy, document: Any
) -> None:
    retry = f"{document['links']['self']}/retry"
    assert (await client.post(retry)).json()["code"] == "nothing_to_retry"
    for engine in ("lazy", "graph"):
        await set_state(tenancy, document, engine, **READY)
    response = await client.post(retry)
    assert (response.status_code, response.json()["status"]) == (409, 409)
    await set_state(tenancy, document, "graph", state="failed", cleanliness="purging")
    assert (await client.post(retry)).status_code == 409


async def test_a_deleted_document_is_deleting_at_once(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, workspace_id: WorkspaceId, document: Any
) -> None:
    await set_state(tenancy, document, "lazy", **READY)
    await set_state(tenancy, document, "graph", state="running", lease_owner="somebody")
    await container.redis.delete("purge")
    before = await corpus_version(tenancy, workspace_id)
    response = await client.delete(document["links"]["self"])
    assert (response.status_code, response.json()["status"]) == (202, "deleting")
    assert response.json()["queryable_modes"] == []
    assert response.json()["engines"]["graph"]["state"] == "cancelled"
    assert await corpus_version(tenancy, workspace_id) > before
    assert [name for name, _ in await queued_jobs(container.redis, "purge")] == ["ingestion.purge_document"]
    assert (await client.delete(document["links"]["self"])).status_code == 202
    for refused in (
        await client.patch(document["links"]["self"], json={"title": "x"}),
        await client.post(f"{document['links']['self']}/retry"),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "document_deleting")


async def test_a_changed_profile_leaves_documents_outdated_until_a_reindex(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, url: str
) -> None:
    workspace = (await client.post("/v1/workspaces", json={"name": "p", "engines": ["lazy", "graph"]})).json()
    here = f"/v1/workspaces/{workspace['id']}"
    old = await upload_text(client, UUID(workspace["id"]))
    failed = await upload_text(client, UUID(workspace["id"]))
    busy = await upload_text(client, UUID(workspace["id"]))
    for engine in ("lazy", "graph"):
        await set_state(tenancy, old, engine, **READY)
        await set_state(tenancy, failed, engine, **FAILED)
    assert not (await read(client, old))["outdated"]
    assert (await client.post(f"{here}/reindex")).json() == {"queued": 0}

    await client.patch(here, json={"settings": {"chunk_tokens": 500}})
    assert (await read(client, old))["outdated"]
    await container.redis.delete("ingest")
    assert (await client.post(f"{here}/reindex")).json() == {"queued": 2}

    renewed = await read(client, old)
    assert (renewed["status"], renewed["outdated"], renewed["version"]["ordinal"]) == ("processing", False, 2)
    assert set(renewed["queryable_modes"]) == set(MODES)  # the old version answers until the new one is ready
    jobs = await queued_jobs(container.redis, "ingest")
    versions = {(await read(client, document))["version"]["id"] for document in (old, failed)}
    assert {payload["version_id"] for _, payload in jobs} == versions
    assert (await read(client, busy))["outdated"]
    assert (await client.post(f"{here}/reindex")).json() == {"queued": 0}


async def test_a_new_title_leaves_a_document_outdated_until_a_reindex_forgets_the_old_one(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index
) -> None:
    workspace_id = WorkspaceId((await client.post("/v1/workspaces", json={"name": "A"})).json()["id"])
    document = await upload_text(client, workspace_id, "Bread needs time.", title="Falconheart Dismissals")
    path = f"/v1/workspaces/{workspace_id}"
    await index(tenancy, document)

    async def is_named() -> bool:
        version = (await read(client, document))["version"]["id"]
        sql = "SELECT l.surfaces::text FROM lazy_passages l JOIN passages p ON p.id = l.passage_id WHERE p.version_id = :id"
        async with tenancy.database.tenant(tenancy.tenant_id) as session:
            (surfaces,) = (await session.execute(text(sql), {"id": version})).scalars()
        return "Falconheart" in surfaces

    assert await is_named()
    patched = await client.patch(f"{path}/documents/{document['id']}", json={"title": "Falconheart Dismissals"})
    assert not patched.json()["outdated"]
    patched = await client.patch(f"{path}/documents/{document['id']}", json={"title": "Bread"})
    assert patched.json()["outdated"]
    assert (await client.post(f"{path}/reindex", json={})).json() == {"queued": 1}
    await index(tenancy, await read(client, document))
    assert not await is_named()


async def test_a_name_or_a_mode_does_not_make_documents_outdated(client: httpx.AsyncClient, tenancy: Tenancy) -> None:
    workspace = (await client.post("/v1/workspaces", json={"name": "q"})).json()
    document = await upload_text(client, UUID(workspace["id"]))
    body = {"name": "r", "default_mode": "baseline", "settings": {"merge_timeout_seconds": 60}}
    await client.patch(f"/v1/workspaces/{workspace['id']}", json=body)
    assert not (await read(client, document))["outdated"]


async def test_a_citation_leads_to_the_passage_and_its_neighbours(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, document: Any
) -> None:
    number = 0
    ref = WorkspaceRef(TenantId(tenancy.tenant_id), workspace_id, number)
    version = StoredVersion(ref, UUID(document["id"]), UUID(document["version"]["id"]))
    drafts = [PassageDraft(i, f"Sentence {i}.", 3, 1, 1, i * 12, i * 12 + 11, ("Heading",), 1) for i in range(5)]
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        rows = await insert_passages(session, version, "Some title", drafts)
    link = f"/v1/workspaces/{workspace_id}/passages/{rows[2].id}"
    found = (await client.get(link, params={"around": 2})).json()
    assert (found["passage"]["text"], found["passage"]["heading_path"]) == ("Sentence 2.", ["Heading"])
    assert [passage["ordinal"] for passage in found["before"]] == [0, 1]
    assert [passage["ordinal"] for passage in found["after"]] == [3, 4]
    assert (await stranger.get(link)).status_code == 404
    other = await tenancy.add_workspace()
    assert (await client.get(f"/v1/workspaces/{other}/passages/{rows[2].id}")).json()["code"] == "passage_not_found"
    await client.delete(document["links"]["self"])
    assert (await client.get(link)).json()["code"] == "passage_not_found"


@pytest.mark.parametrize("passage_id", ["0", "-1", "x", str(2**63), "1e3"])
async def test_a_passage_number_that_cannot_be_is_refused(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, passage_id: str
) -> None:
    assert (await client.get(f"/v1/workspaces/{workspace_id}/passages/{passage_id}")).status_code == 422


async def test_readers_change_nothing(connect: Connect, tenancy: Tenancy, document: Any) -> None:
    reader = await connect(tenancy, Role.READER)
    assert (await read(reader, document))["id"] == document["id"]
    here = document["links"]["self"]
    for refused in (
        await reader.patch(here, json={"title": "x"}), await reader.delete(here), await reader.post(f"{here}/retry"),
    ):  # fmt: skip
        assert (refused.status_code, refused.json()["code"]) == (403, "role_required")


async def test_a_missing_original_is_a_clear_answer(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, document: Any
) -> None:
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        version = await session.scalar(select(Version).where(Version.id == UUID(document["version"]["id"])))
        assert version is not None
    await container.blobs.delete([f"{tenancy.tenant_id}/{document['workspace_id']}/{version.blob_id}"])
    response = await client.get(document["links"]["content"])
    assert (response.status_code, response.json()["code"]) == (404, "original_missing")
