"""Looking around, exports and duplicates over HTTP."""

import json
from datetime import timedelta
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from sqlalchemy import text

from app.bootstrap import Container, Worker
from app.db.base import WorkspaceId
from app.domain.ingestion.purge_repository import StaleWork
from app.jobs import MergeDuplicates
from tests.api.conftest import Index
from tests.api.documents import upload_text
from tests.factories import Tenancy
from workers.task import attempt

TEXT = """Elena Petrova leads the research group of Harbor Works in Hamburg. In 2022 Elena Petrowa received the Bluewater Prize.

Jonas Weber hired Elena Petrova in 2016. Professor Ingrid Solberg shared the Bluewater Prize with Elena Petrowa.
"""


@pytest.fixture
async def url(client: httpx.AsyncClient, tenancy: Tenancy, index: Index) -> str:
    workspace_id: WorkspaceId = await tenancy.add_workspace(engines=("lazy", "graph"))
    await index(tenancy, await upload_text(client, workspace_id, TEXT))
    return f"/v1/workspaces/{workspace_id}"


async def get(client: httpx.AsyncClient, path: str, **params: Any) -> Any:
    response = await client.get(path, params=params)
    assert response.status_code == 200, response.text
    return response.json()


async def test_one_looks_around_from_an_entity(client: httpx.AsyncClient, url: str) -> None:
    found = (await get(client, f"{url}/entities/search", query="petrovva elena"))["items"]
    assert found[0]["name"].startswith("Elena Petro")
    around = await get(client, f"{url}/entity/neighbours", name="Elena Petrova", depth=3)
    assert around["entities"][0]["name"] == "Elena Petrova"
    assert len(around["entities"]) > 3
    assert around["relations"]
    far = max(around["entities"], key=lambda entity: entity["distance"])
    paths = (await get(client, f"{url}/entities/paths", source="Elena Petrova", target=far["name"]))["paths"]
    assert len(paths[0]) - 1 == far["distance"]
    first = await get(client, f"{url}/entity/mentions", name="Elena Petrova", limit=1)
    rest = await get(client, f"{url}/entity/mentions", name="Elena Petrova", cursor=first["next_cursor"])
    told = [(m["chunk_ordinal"], m["name"], m["target"], m["description"]) for m in first["items"] + rest["items"]]
    assert len(told) == len(set(told)) > 1
    for path in ("entity/neighbours", "entity/mentions"):
        assert (await client.get(f"{url}/{path}", params={"name": "Nobody"})).json()["code"] == "entity_not_found"
    assert (await client.get(f"{url}/entity/neighbours", params={"name": "x", "depth": 4})).status_code == 422
    assert (await client.get(f"{url}/entities/search", params={"query": "\0"})).status_code == 422


async def test_both_exports_hold_the_same_graph(client: httpx.AsyncClient, url: str) -> None:
    body = {"name": "tab\there <&>\"'", "description": "line\nbreak"}
    assert (await client.post(f"{url}/entities", json=body)).status_code == 201
    lines = [json.loads(line) for line in (await client.get(f"{url}/graph")).text.splitlines()]
    names = {line["name"] for line in lines if line["kind"] == "entity"}
    listed = (await get(client, f"{url}/entities", limit=200))["items"]
    assert names == {item["name"] for item in listed}
    relations = {(line["source"], line["target"]) for line in lines if line["kind"] == "relation"}
    assert len(relations) == sum(item["degree"] for item in listed) / 2
    answer = await client.get(f"{url}/graph", params={"format": "graphml"})
    assert answer.headers["content-type"].startswith("application/graphml+xml")
    space = "{http://graphml.graphdrawing.org/xmlns}"
    root = ElementTree.fromstring(answer.text)  # noqa: S314 - our own
    assert {node.get("id") for node in root.iter(f"{space}node")} == names
    assert {(edge.get("source"), edge.get("target")) for edge in root.iter(f"{space}edge")} == relations


async def test_duplicates_are_rejected_remembered_and_merged(client: httpx.AsyncClient, url: str) -> None:
    where = f"{url}/entities/duplicates"

    async def proposed() -> list[set[str]]:
        return [set(group["names"]) for group in (await get(client, where))["items"]]

    pair = {"Elena Petrova", "Elena Petrowa"}
    assert pair in await proposed()
    rejection = {"one": "Elena Petrowa", "other": "Elena Petrova"}
    assert (await client.post(f"{where}/rejections", json=rejection)).status_code == 201
    assert pair not in await proposed()
    assert (await get(client, f"{where}/rejections"))["items"] == [{"one": "Elena Petrova", "other": "Elena Petrowa"}]
    again = {"one": "elena petrowa", "other": "ELENA  Petrova"}
    assert (await client.post(f"{where}/rejections", json=again)).json()["one"] == "Elena Petrowa"
    for wrong, code in (("elena PETROWA", "invalid_decision"), ("Nobody", "entity_not_found")):
        refused = await client.post(f"{where}/rejections", json={"one": "Elena Petrowa", "other": wrong})
        assert refused.json()["code"] == code
    assert len((await get(client, f"{where}/rejections"))["items"]) == 1
    assert (await client.delete(f"{where}/rejections", params=again)).status_code == 204
    assert (await get(client, f"{where}/rejections"))["items"] == []
    merged = (await client.post(f"{where}/merge", json={"min_score": 0.85, "limit": 1})).json()
    (group,) = merged["items"]
    assert (group["outcome"], set(group["names"]), group["name"] in pair) == ("merged", pair, True)
    assert pair not in await proposed()
    undone = await client.post(f"{url}/entities/changes/{group['change_id']}/undo")
    assert undone.status_code == 200
    assert pair in await proposed()


async def test_accepting_is_remembered_and_merged_later(client: httpx.AsyncClient, url: str) -> None:
    where = f"{url}/entities/duplicates"
    unlike = {"Jonas Weber", "Hamburg"}
    made = await client.post(f"{where}/acceptances", json={"names": ["jonas WEBER", "Hamburg"]})
    assert (made.status_code, set(made.json()["names"])) == (201, unlike)
    assert (await get(client, f"{where}/acceptances"))["items"] == [{"one": "Hamburg", "other": "Jonas Weber"}]
    first, *_ = (await get(client, where))["items"]
    assert (set(first["names"]), first["is_accepted"], first["score"]) == (unlike, True, 1.0)
    assert first["pairs"][0]["reasons"][0] == "accepted"
    # Whoever decides otherwise later has the say.
    pair = {"one": "Jonas Weber", "other": "Hamburg"}
    assert (await client.post(f"{where}/rejections", json=pair)).status_code == 201
    assert (await get(client, f"{where}/acceptances"))["items"] == []
    assert (await client.post(f"{where}/merge", json={})).json()["items"] == []
    assert (await client.post(f"{where}/acceptances", json={"names": list(unlike)})).status_code == 201
    assert (await client.delete(f"{where}/acceptances", params=pair)).status_code == 204
    assert (await client.post(f"{where}/merge", json={})).json()["items"] == []
    assert (await client.post(f"{where}/acceptances", json={"names": list(unlike)})).status_code == 201
    (group,) = (await client.post(f"{where}/merge", json={})).json()["items"]
    assert (set(group["names"]), group["outcome"]) == (unlike, "merged")
    assert all(not item["is_accepted"] for item in (await get(client, where))["items"])


async def test_a_rejection_follows_its_names_through_merges(client: httpx.AsyncClient, url: str) -> None:
    where = f"{url}/entities/duplicates"
    rejection = {"one": "Elena Petrowa", "other": "Elena Petrova"}
    assert (await client.post(f"{where}/rejections", json=rejection)).status_code == 201
    merge = {"sources": ["Elena Petrowa"], "target": "Elena Petrovna"}
    merged = (await client.post(f"{url}/entities/merge", json=merge)).json()
    pair = {"Elena Petrova", "Elena Petrovna"}

    async def proposed() -> list[set[str]]:
        return [set(group["names"]) for group in (await get(client, where))["items"]]

    assert pair not in await proposed()
    assert (await client.post(f"{url}/entities/changes/{merged['change_id']}/undo")).status_code == 200
    assert not any({"Elena Petrova", "Elena Petrowa"} <= names for names in await proposed())
    assert (await client.post(f"{url}/entities/merge", json=merge)).status_code == 200
    assert (await client.delete(f"{where}/rejections", params=rejection)).status_code == 204
    assert pair in await proposed()


async def test_a_bulk_merge_tells_what_became_of_every_group(
    client: httpx.AsyncClient, container: Container, tenancy: Tenancy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = f"{url}/entities/duplicates"
    for name in ("Kubernetes", "K8s", "Zeta Foundry", "Zeta Foundry Inc."):
        assert (await client.post(f"{url}/entities", json={"name": name, "description": name})).status_code == 201
    proposed = [set(group["names"]) for group in (await get(client, where))["items"]]
    assert len(proposed) == 3
    # As if it had been deleted while the groups were looked for.
    assert (await client.delete(f"{url}/entity", params={"name": "K8s"})).status_code == 204
    async with container.database.tenant(tenancy.tenant_id) as session:
        await session.execute(text("UPDATE corpus_versions SET version = version - 1"))
    told = (await client.post(f"{where}/merge", json={"min_score": 0.75})).json()["items"]
    assert [set(group["names"]) for group in told] == proposed
    for group in told:
        if "K8s" in group["names"]:
            assert (group["outcome"], group["code"], group["change_id"]) == ("refused", "entity_not_found", None)
        else:
            assert (group["outcome"], group["code"], group["name"] in group["names"]) == ("merged", None, True)
    assert (await client.post(f"{url}/entities", json={"name": "K8s", "description": "x"})).status_code == 201
    monkeypatch.setitem(vars(container.settings), "merge_inline_relations", -1)
    (queued,) = (await client.post(f"{where}/merge", json={"min_score": 0.75})).json()["items"]
    assert queued["outcome"] == "queued"
    change = (await client.get(f"{url}/entities/changes/{queued['change_id']}")).json()
    assert (change["state"], set(change["names"])) == ("queued", {"Kubernetes", "K8s"})


async def test_a_split_over_http_is_undone(client: httpx.AsyncClient, url: str) -> None:
    entity = await get(client, f"{url}/entity", name="Elena Petrova")
    body = {"name": "Elena Petrova", "parts": [{"name": "Elena P.", "chunks": entity["chunks"]}]}
    made = await client.post(f"{url}/entities/split", json=body)
    assert (made.status_code, made.json()["entities"][0]["name"]) == (200, "Elena P."), made.text
    assert (await client.post(f"{url}/entities/changes/{made.json()['change_id']}/undo")).status_code == 200
    assert await get(client, f"{url}/entity", name="Elena Petrova") == entity
    other = {"name": "Elena Petrova", "parts": [{"name": "X", "chunks": [{**entity["chunks"][0], "ordinal": 77}]}]}
    assert (await client.post(f"{url}/entities/split", json=other)).json()["code"] == "invalid_entity"


async def test_the_surest_duplicates_are_merged_by_themselves_where_that_is_wanted(
    client: httpx.AsyncClient, container: Container, worker: Worker, tenancy: Tenancy, index: Index
) -> None:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    url, job = f"/v1/workspaces/{workspace_id}", MergeDuplicates(tenancy.tenant_id, workspace_id)

    async def is_swept() -> bool:
        async with container.database.system() as session:
            rows = await StaleWork(session).list(timedelta(0), 100_000)
        return ("duplicates", workspace_id) in [(row.kind, row.subject_id) for row in rows]

    await index(tenancy, await upload_text(client, workspace_id, TEXT))
    for name, kind in (("Orbit Works", "Firm"), ("Orbit Works Inc.", "Firm"), ("Kerb", "Firm"), ("KERB GmbH", "Place")):
        body = {"name": name, "type": kind, "description": name}
        assert (await client.post(f"{url}/entities", json=body)).status_code == 201

    async def automatic() -> list[dict[str, Any]]:
        assert await attempt(worker.jobs, job, runs=1) is None
        changes = (await get(client, f"{url}/entities/changes"))["items"]
        return [change for change in changes if change["actor"] == "automatic"]

    assert await automatic() == []
    settings = {"settings": {"merge_duplicates_above": 0.9}}
    assert (await client.patch(url, json=settings)).status_code == 200
    later = await upload_text(client, workspace_id, "Lena Fuchs knows Marek Novak.")
    assert await automatic() == []  # the document that waits tells again
    assert not await is_swept()
    await index(tenancy, later)
    # Or, where it did not come into the graph or its message was lost, the sweeper.
    assert await is_swept()
    # An editor may say so; merging by it is for others.
    unlike = {"Jonas Weber", "Hamburg"}
    accepted = await client.post(f"{url}/entities/duplicates/acceptances", json={"names": list(unlike)})
    assert accepted.status_code == 201
    made = await automatic()
    assert not any(unlike <= set(change["names"]) for change in made)
    assert {"Orbit Works", "Orbit Works Inc."} in [set(change["names"]) for change in made]
    assert not any("KERB GmbH" in change["names"] for change in made)
    for change in made:
        assert (await client.post(f"{url}/entities/changes/{change['id']}/undo")).status_code == 200
    assert await is_swept()
    assert [change["state"] for change in await automatic()] == ["undone"] * len(made)
    assert not await is_swept()
