"""Names that documents brought go with the last of them from every record, and people's own names stay."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from app.bootstrap import Worker
from app.jobs import PurgeDocument, PurgeWorkspace
from tests.api.conftest import Index
from tests.api.documents import upload_text
from tests.api.test_deleting import admin, traces
from tests.factories import Tenancy
from workers.task import attempt

__all__ = ["admin"]


def mark() -> str:
    """Letters of one test's own: every table is searched for its names, and other tests leave rows there."""
    return "".join(chr(ord("a") + int(digit, 16)) for digit in uuid4().hex[:8])


@dataclass
class Corpus:
    """A workspace with a graph, three people, a text about each, and a worker's part done at once."""

    client: httpx.AsyncClient
    tenancy: Tenancy
    index: Index
    worker: Worker
    workspace_id: UUID
    mark: str = field(default_factory=mark)
    documents: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.helena, self.elena, self.magda = (
            f"{name}{self.mark}" for name in ("Helena Quorbix", "Elena Velstrom", "Magda Trunoff")
        )
        self.clocks = f"{self.helena} repairs clocks in Bregenz."
        self.harbour = f"{self.elena} met Ben Holm in Port Lindau."
        self.school = f"{self.magda} teaches music in Konstanz."
        self.url = f"/v1/workspaces/{self.workspace_id}/entities"
        self.entity = f"/v1/workspaces/{self.workspace_id}/entity"

    async def add(self, *texts: str) -> None:
        for text in texts:
            self.documents[text] = await upload_text(self.client, self.workspace_id, text, title=text.split()[1])
            await self.index(self.tenancy, self.documents[text])

    async def delete(self, *texts: str) -> None:
        for text in texts:
            document = self.documents.pop(text)
            assert (await self.client.delete(document["links"]["self"])).is_success
            job = PurgeDocument(self.tenancy.tenant_id, self.workspace_id, UUID(document["id"]))
            await attempt(self.worker.jobs, job, runs=1)
            assert (await self.client.get(document["links"]["self"])).status_code == 404

    async def merge(self, source: str, target: str) -> str:
        return str((await self.post("/merge", {"sources": [source], "target": target}))["change_id"])

    async def post(self, action: str, body: Any) -> Any:
        answer = await self.client.post(f"{self.url}{action}", json=body)
        assert answer.is_success, answer.text
        return answer.json()

    async def change(self, change_id: str) -> Any:
        return (await self.client.get(f"{self.url}/changes/{change_id}")).json()

    async def meant_by(self, name: str) -> str | None:
        answer = await self.client.get(f"{self.url}/{quote(name)}")
        return str(answer.json()["name"]) if answer.is_success else None


@pytest.fixture
async def corpus(client: httpx.AsyncClient, tenancy: Tenancy, index: Index, worker: Worker) -> Corpus:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    return Corpus(client, tenancy, index, worker, workspace_id)


async def test_nothing_is_left_of_merged_entities(corpus: Corpus, admin: asyncpg.Connection) -> None:
    await corpus.add(corpus.clocks, corpus.harbour, corpus.school)
    edited = await corpus.client.patch(corpus.entity, params={"name": corpus.helena}, json={"type": "Smith"})
    assert edited.is_success
    await corpus.post("/duplicates/rejections", {"one": corpus.helena, "other": corpus.magda})
    merged = await corpus.merge(corpus.helena, corpus.elena)
    await corpus.delete(corpus.clocks)
    assert await traces(admin, f"quorbix{corpus.mark}") == {}
    told = await corpus.change(merged)
    assert (told["names"], told["request"], told["state"]) == ([corpus.elena], {}, "done")
    assert told["forgotten_at"] is not None
    refused = await corpus.client.post(f"{corpus.url}/changes/{merged}/undo")
    assert (refused.status_code, refused.json()["code"]) == (409, "removed_with_documents")
    await corpus.delete(corpus.harbour)
    assert await traces(admin, f"quorbix{corpus.mark}", f"velstrom{corpus.mark}") == {}
    assert (await corpus.change(merged))["names"] == []
    # Who did what, and when, is still told.
    audit = (await corpus.client.get("/v1/audit", params={"subject": merged})).json()["items"]
    assert [(event["action"], event["after"]) for event in audit] == [("merge_entities", None)]
    assert audit[0]["redacted_at"] is not None
    assert await corpus.meant_by(corpus.magda) == corpus.magda


async def test_what_was_deleted_or_split_by_hand_is_forgotten_too(corpus: Corpus, admin: asyncpg.Connection) -> None:
    await corpus.add(corpus.clocks, corpus.harbour)
    assert (await corpus.client.delete(corpus.entity, params={"name": corpus.helena})).is_success
    chunk = {"version_id": corpus.documents[corpus.harbour]["version"]["id"], "ordinal": 0}
    part = {"name": f"Captain {corpus.mark}", "chunks": [chunk]}
    await corpus.post("/split", {"name": corpus.elena, "parts": [part]})
    await corpus.delete(corpus.harbour)
    assert await traces(admin, f"velstrom{corpus.mark}", f"captain {corpus.mark}") == {}
    assert "entity_changes" in await traces(admin, f"quorbix{corpus.mark}")
    await corpus.delete(corpus.clocks)
    assert await traces(admin, f"quorbix{corpus.mark}") == {}


async def test_names_stay_that_others_say_or_people_made(corpus: Corpus) -> None:
    again = f"{corpus.clocks} {corpus.helena} sells them in Lindau."
    await corpus.add(corpus.clocks, again, corpus.harbour)
    merged = await corpus.merge(corpus.helena, corpus.elena)
    await corpus.delete(corpus.clocks)
    assert await corpus.meant_by(corpus.helena) == corpus.elena
    assert (await corpus.change(merged))["forgotten_at"] is None
    await corpus.post("/aliases", {"alias": "The Captain", "target": corpus.elena})
    await corpus.post("", {"name": "Quorbix Clocks", "type": "Company", "description": "Sells clocks."})
    await corpus.delete(again, corpus.harbour)
    aliases = (await corpus.client.get(f"{corpus.url}/aliases")).json()["items"]
    assert [(item["alias"], item["target"]) for item in aliases] == [("The Captain", corpus.elena)]
    assert await corpus.meant_by("Quorbix Clocks") == "Quorbix Clocks"


async def test_another_spelling_of_an_entity_s_name_goes_alone(corpus: Corpus) -> None:
    """The entity stands by what its alias brings, and no document says its own name any more."""
    await corpus.add(corpus.clocks, corpus.harbour)
    merged = await corpus.merge(corpus.helena, corpus.elena)
    spelt = corpus.harbour.replace(corpus.elena, corpus.elena.upper())
    await corpus.add(spelt)
    assert await corpus.meant_by(corpus.elena.upper()) == corpus.elena
    await corpus.delete(corpus.harbour, spelt)
    assert await corpus.meant_by(corpus.helena) == corpus.elena
    assert (await corpus.change(merged))["names"] == [corpus.helena, corpus.elena]


async def test_a_name_that_comes_back_after_its_documents_is_a_new_one(corpus: Corpus) -> None:
    await corpus.add(corpus.clocks, corpus.harbour)
    await corpus.merge(corpus.helena, corpus.elena)
    await corpus.delete(corpus.clocks)
    await corpus.add(corpus.clocks)
    assert await corpus.meant_by(corpus.helena) == corpus.helena


async def test_a_name_means_the_same_when_one_that_it_led_over_is_gone(
    corpus: Corpus, admin: asyncpg.Connection
) -> None:
    await corpus.add(corpus.clocks, corpus.harbour, corpus.school)
    await corpus.merge(corpus.helena, corpus.elena)
    await corpus.merge(corpus.elena, corpus.magda)
    await corpus.delete(corpus.harbour)
    assert await traces(admin, f"velstrom{corpus.mark}") == {}
    assert await corpus.meant_by(corpus.helena) == corpus.magda


async def test_a_deleted_workspace_leaves_no_names_in_the_audit_log(corpus: Corpus, admin: asyncpg.Connection) -> None:
    await corpus.add(corpus.clocks, corpus.harbour)
    await corpus.merge(corpus.helena, corpus.elena)
    assert (await corpus.client.delete(f"/v1/workspaces/{corpus.workspace_id}")).is_success
    await attempt(corpus.worker.jobs, PurgeWorkspace(corpus.tenancy.tenant_id, corpus.workspace_id), runs=1)
    assert await traces(admin, f"quorbix{corpus.mark}", f"velstrom{corpus.mark}") == {}
    assert (await corpus.client.get("/v1/audit", params={"kind": "document"})).json()["items"]
