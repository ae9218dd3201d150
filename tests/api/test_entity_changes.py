"""Merges, their history and undoing over HTTP."""

import json
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import text

from app.bootstrap import Container, Worker
from app.db.base import WorkspaceId
from app.domain.entities.changes import MAX_ATTEMPTS
from app.domain.entities.repository import ChangeRepository
from app.domain.tenants.records import Role
from app.jobs import ChangeEntities
from app.retrieval.contract import WorkspaceRef
from tests.api.conftest import Connect, Index
from tests.api.documents import upload_text
from tests.factories import Tenancy
from workers.task import attempt

TEXT = """Elena Petrova leads the research group of Harbor Works in Hamburg. In 2022 Helena Petrova received the Bluewater Prize.

Jonas Weber hired Elena Petrova in 2016. Professor Ingrid Solberg shared the Bluewater Prize with Helena Petrova.
"""
MERGE: dict[str, Any] = {"sources": ["Helena Petrova"], "target": "Elena Petrova"}


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=("lazy", "graph"))


@pytest.fixture
def url(workspace_id: WorkspaceId) -> str:
    return f"/v1/workspaces/{workspace_id}/entities"


@pytest.fixture
async def document(client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index) -> Any:
    made = await upload_text(client, workspace_id, TEXT)
    await index(tenancy, made)
    return made


async def everything(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    listed = (await client.get(url, params={"limit": 200})).json()["items"]
    return {item["name"]: (await client.get(item["link"])).json() for item in listed}


async def test_a_merge_is_previewed_made_told_and_undone(client: httpx.AsyncClient, url: str, document: Any) -> None:
    one = f"{url.removesuffix('/entities')}/entity"
    assert (await client.patch(one, params={"name": "Helena Petrova"}, json={"type": "Person"})).status_code == 200
    before = await everything(client, url)
    preview = (await client.post(f"{url}/merge", json=MERGE | {"dry_run": True})).json()
    assert preview["dry_run"] is True
    assert await everything(client, url) == before
    merged = (await client.post(f"{url}/merge", json=MERGE)).json()
    assert merged["description"] == preview["description"]
    assert {r["weight"] for r in merged["relations"]} == {r["weight"] for r in preview["relations"]}
    for name in ("helena petrova", "elena petrova"):
        told = (await client.get(f"{url}/changes", params={"name": name})).json()["items"]
        assert [(change["kind"], change["state"]) for change in told] == [("merge", "done"), ("edit_entity", "done")]
        assert told[0]["id"] == merged["change_id"]
    assert told[0]["actor"].startswith("key:")
    undone = await client.post(f"{url}/changes/{merged['change_id']}/undo")
    assert (undone.status_code, undone.json()["kind"], undone.json()["undoes"]) == (200, "undo", merged["change_id"])
    assert await everything(client, url) == before
    states = [(change["kind"], change["state"]) for change in (await client.get(f"{url}/changes")).json()["items"]]
    assert states == [("undo", "done"), ("merge", "undone"), ("edit_entity", "done")]
    again = await client.post(f"{url}/changes/{merged['change_id']}/undo")
    assert (again.status_code, again.json()["code"]) == (409, "undo_blocked")
    assert (await client.get(f"{url}/changes", params={"name": "Nobody"})).json()["items"] == []


async def test_a_large_merge_is_left_to_a_worker(
    client: httpx.AsyncClient, container: Container, worker: Worker, tenancy: Tenancy, workspace_id: WorkspaceId,
    url: str, document: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    before = await everything(client, url)
    monkeypatch.setitem(vars(container.settings), "merge_inline_relations", 0)
    queued = await client.post(f"{url}/merge", json=MERGE, headers={"Idempotency-Key": "one"})
    assert (queued.status_code, queued.json()["state"]) == (202, "queued"), queued.text
    again = await client.post(f"{url}/merge", json=MERGE, headers={"Idempotency-Key": "one"})
    assert (again.status_code, again.json()["id"]) == (202, queued.json()["id"])
    assert await everything(client, url) == before
    await run(worker, tenancy, workspace_id, queued.json()["id"])
    await run(worker, tenancy, workspace_id, queued.json()["id"])
    done = (await client.get(f"{url}/changes/{queued.json()['id']}")).json()
    assert (done["state"], done["error_code"]) == ("done", None)
    assert (await client.get(f"{url}/{quote('Helena Petrova')}")).json()["name"] == "Elena Petrova"
    undo = await client.post(f"{url}/changes/{queued.json()['id']}/undo")
    assert (undo.status_code, undo.json()["state"]) == (202, "queued")
    await run(worker, tenancy, workspace_id, undo.json()["id"])
    assert await everything(client, url) == before


async def test_a_large_split_is_left_to_a_worker(
    client: httpx.AsyncClient, container: Container, worker: Worker, tenancy: Tenancy, workspace_id: WorkspaceId,
    url: str, document: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    before = await everything(client, url)
    monkeypatch.setitem(vars(container.settings), "merge_inline_relations", 0)
    chunks = (await client.get(f"{url}/{quote('Elena Petrova')}")).json()["chunks"]
    split = {"name": "Elena Petrova", "parts": [{"name": "Another Elena", "chunks": chunks}]}
    queued = await client.post(f"{url}/split", json=split)
    assert (queued.status_code, queued.json()["kind"], queued.json()["state"]) == (202, "split", "queued")
    assert await everything(client, url) == before
    await run(worker, tenancy, workspace_id, queued.json()["id"])
    after = await everything(client, url)
    assert {"Another Elena"} == after.keys() - before.keys()
    undo = await client.post(f"{url}/changes/{queued.json()['id']}/undo")
    await run(worker, tenancy, workspace_id, undo.json()["id"])
    assert await everything(client, url) == before


async def test_a_preview_that_would_be_too_large_is_refused(
    client: httpx.AsyncClient, url: str, document: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.domain.entities.changes.MAX_PREVIEW_RELATIONS", 1)
    refused = await client.post(f"{url}/merge", json=MERGE | {"dry_run": True})
    assert (refused.status_code, refused.json()["code"]) == (409, "preview_too_large")


async def test_aliases_by_hand_stand_in_the_history(client: httpx.AsyncClient, url: str, document: Any) -> None:
    for _ in range(2):
        added = await client.post(f"{url}/aliases", json={"alias": "E. P.", "target": "elena petrova"})
        assert added.status_code == 201
    assert (await client.delete(f"{url}/aliases/{quote('E. P.')}")).status_code == 204
    told = (await client.get(f"{url}/changes", params={"name": "Elena Petrova"})).json()["items"]
    assert [(change["kind"], change["names"]) for change in told] == [
        ("remove_alias", ["E. P.", "Elena Petrova"]),
        ("add_alias", ["E. P.", "Elena Petrova"]),
    ]
    assert told[0]["actor"].startswith("key:")


async def test_a_queued_merge_that_became_impossible_says_why(
    client: httpx.AsyncClient, container: Container, worker: Worker, tenancy: Tenancy, workspace_id: WorkspaceId,
    url: str, document: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setitem(vars(container.settings), "merge_inline_relations", 0)
        queued = (await client.post(f"{url}/merge", json=MERGE)).json()
    assert (await client.post(f"{url}/merge", json=MERGE)).status_code == 200
    await run(worker, tenancy, workspace_id, queued["id"])
    failed = (await client.get(f"{url}/changes/{queued['id']}")).json()
    assert (failed["state"], failed["error_code"]) == ("failed", "entity_not_found")


async def test_a_queued_merge_is_given_up_after_some_attempts(
    client: httpx.AsyncClient, container: Container, worker: Worker, tenancy: Tenancy, workspace_id: WorkspaceId,
    url: str, document: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setitem(vars(container.settings), "merge_inline_relations", 0)
    queued = (await client.post(f"{url}/merge", json=MERGE)).json()
    job = ChangeEntities(tenancy.tenant_id, workspace_id, UUID(queued["id"]))
    async with container.leases.hold(WorkspaceRef(tenancy.tenant_id, workspace_id, 0), wait_seconds=5):
        assert await attempt(worker.jobs, job, runs=1) is not None  # busy: not counted
    for n in range(MAX_ATTEMPTS):
        # As a worker that is killed leaves it: the attempt was begun, and nothing came of it.
        async with container.database.tenant(tenancy.tenant_id) as session:
            assert await ChangeRepository(session).begin(job.change_id, max_attempts=MAX_ATTEMPTS), n
    assert (await client.get(f"{url}/changes/{queued['id']}")).json()["state"] == "queued"
    await run(worker, tenancy, workspace_id, queued["id"])
    failed = (await client.get(f"{url}/changes/{queued['id']}")).json()
    assert (failed["state"], failed["error_code"]) == ("failed", "too_many_attempts")


async def run(worker: Worker, tenancy: Tenancy, workspace_id: WorkspaceId, change_id: str) -> None:
    assert await attempt(worker.jobs, ChangeEntities(tenancy.tenant_id, workspace_id, UUID(change_id)), runs=1) is None


async def test_a_request_whose_answer_was_lost_is_not_carried_out_twice(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, url: str, document: Any
) -> None:
    headers = {"Idempotency-Key": "lost"}
    first = await client.post(f"{url}/merge", json=MERGE, headers=headers)
    async with container.database.tenant(tenancy.tenant_id) as session:
        await session.execute(text("DELETE FROM idempotency_keys"))
    again = await client.post(f"{url}/merge", json=MERGE, headers=headers)
    assert (again.status_code, again.json()) == (200, first.json())
    async with container.database.tenant(tenancy.tenant_id) as session:
        await session.execute(text("DELETE FROM idempotency_keys"))
    other = await client.post(f"{url}/merge", json={**MERGE, "target": "Hamburg"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    one = f"{url.removesuffix('/entities')}/entity"
    assert (await client.delete(one, params={"name": "Elena Petrova"})).status_code == 204
    gone = await client.post(f"{url}/merge", json=MERGE, headers=headers)
    assert (gone.status_code, gone.json()["id"], gone.json()["state"]) == (200, first.json()["change_id"], "done")


async def test_only_admins_undo_and_strangers_see_no_history(
    client: httpx.AsyncClient, connect: Connect, stranger: httpx.AsyncClient, tenancy: Tenancy, url: str, document: Any
) -> None:
    change = (await client.post(f"{url}/merge", json=MERGE)).json()["change_id"]
    editor = await connect(tenancy, Role.EDITOR)
    assert (await editor.post(f"{url}/changes/{change}/undo")).json()["code"] == "role_required"
    for hidden in (
        await stranger.get(f"{url}/changes"),
        await stranger.get(f"{url}/changes/{change}"),
        await stranger.post(f"{url}/changes/{change}/undo"),
    ):
        assert hidden.status_code == 404
    assert (await client.get(f"{url}/changes/{uuid4()}")).json()["code"] == "change_not_found"


WRITING = """
INSERT INTO entity_changes (tenant_id, workspace_id, id, kind, state, names, request, attempts, sent_at)
VALUES (:tenant, :workspace, :id, 'merge', 'writing', '{Helena Petrova,Elena Petrova}', CAST(:request AS jsonb), :attempts,
        now() - interval '1 hour')"""
STALE = "SELECT change_id FROM stale_entity_changes(interval '30 minutes', 1000)"


@pytest.mark.parametrize(("attempts", "state", "code"), [(0, "failed", "interrupted"), (1, "done", None)])
async def test_a_change_that_was_stopped_is_put_back_and_made_again_if_it_was_queued(
    client: httpx.AsyncClient, container: Container, worker: Worker, tenancy: Tenancy, workspace_id: WorkspaceId,
    url: str, document: Any, attempts: int, state: str, code: str | None,
) -> None:  # fmt: skip
    before, change = await everything(client, url), uuid4()
    request = json.dumps({"sources": ["Helena Petrova"], "target": "Elena Petrova", "strategies": {}, "values": {}})
    row = {"tenant": tenancy.tenant_id, "workspace": workspace_id, "id": change, "request": request}
    async with container.database.tenant(tenancy.tenant_id) as session:
        await session.execute(text(WRITING), {**row, "attempts": attempts})
    async with container.database.system() as session:
        assert change in set(await session.scalars(text(STALE)))
    assert (await client.get(f"{url}/changes/{change}")).json()["state"] == "writing"
    await run(worker, tenancy, workspace_id, str(change))
    told = (await client.get(f"{url}/changes/{change}")).json()
    assert (told["state"], told["error_code"]) == (state, code)
    after = await everything(client, url)
    assert after == before if attempts == 0 else before.keys() - after.keys() == {"Helena Petrova"}


async def test_a_change_that_cannot_be_put_back_is_left_to_people_in_the_end(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, workspace_id: WorkspaceId, url: str
) -> None:
    change = uuid4()
    row = {"tenant": tenancy.tenant_id, "workspace": workspace_id, "id": change, "request": "{}", "attempts": 0}
    async with container.database.tenant(tenancy.tenant_id) as session:
        await session.execute(text(WRITING), row)
    for _ in range(5):
        async with container.database.system() as session:
            assert change in set(await session.scalars(text(STALE)))
        async with container.database.tenant(tenancy.tenant_id) as session:
            await ChangeRepository(session).fail(change, "undo_blocked", "Answers are gone.")
    async with container.database.system() as session:
        assert change not in set(await session.scalars(text(STALE)))
    told = (await client.get(f"{url}/changes/{change}")).json()
    assert (told["state"], told["error_code"]) == ("writing", "undo_blocked")
