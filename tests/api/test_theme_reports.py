"""Reports of themes: by whose wish, from what, paid once, and gone with what they were made from."""

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import func, select

from app.bootstrap import Worker
from app.db.base import WorkspaceId
from app.db.models import ThemeReport, ThemeReportSource
from app.db.session import Database
from app.domain.tenants.records import Role
from app.domain.themes import report_repository, reports
from app.jobs import PurgeDocument
from app.retrieval.themes import browsing
from app.settings import Settings
from tests.api.conftest import Connect, Index
from tests.api.documents import upload_text
from tests.api.theme_maps import add_map
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer
from workers.task import attempt

TEXTS = [
    "Kestrel Polymers makes the seals of the Tideline Sensor in Porto. It does so since 1998.",
    "The Tideline Sensor was recalled, for seals by Kestrel Polymers had cracks.",
    "The Icebreaker Aurora keeps the Gulf of Bothnia open in winter.",
]


async def prepared(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index, **body: Any
) -> tuple[WorkspaceId, list[Any], list[UUID]]:
    made = await client.post("/v1/workspaces", json={"name": "Reports", "engines": ["lazy", "graph"], **body})
    assert made.status_code == 201, made.text
    workspace_id = WorkspaceId(made.json()["id"])
    documents = [await upload_text(client, workspace_id, text, title=f"Note {n}") for n, text in enumerate(TEXTS)]
    await index(tenancy, *[{**document, "engines": ["lazy"]} for document in documents])
    return workspace_id, documents, await add_map(tenancy, workspace_id, [documents[:2], documents[2:]])


async def test_a_report_is_written_once_for_a_content_and_goes_with_it(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index, worker: Worker, stub_llm: StubServer, settings: Settings,
    owner_database: Database, connect: Connect,
) -> None:  # fmt: skip
    chat = await register_stub(stub_llm, owner_database, settings)
    body = {"chat_model": chat, "settings": {"theme_reports": True}}
    workspace_id, documents, themes = await prepared(client, tenancy, index, **body)
    theme = f"/v1/workspaces/{workspace_id}/themes/{themes[1]}"
    assert (await client.get(theme)).json()["report"] is None
    reader = await connect(tenancy, Role.READER)
    assert (await reader.post(f"{theme}/report")).json()["code"] == "role_required"
    answer = "## Seals of the sensor\n\nKestrel Polymers makes seals that had cracks."
    stub_llm.set_faults({"kind": "answer", "name": "written", "body": answer, "times": 9})
    before = Counter(stub_llm.stats()["calls"])
    written = (await client.post(f"{theme}/report")).json()
    assert (written["title"], written["model"], written["is_extractive"], written["is_cached"]) == (
        "Seals of the sensor", chat, False, False,
    )  # fmt: skip
    assert written["summary"] == "Kestrel Polymers makes seals that had cracks."
    again = (await client.post(f"{theme}/report")).json()
    assert again == written | {"is_cached": True}
    assert (await reader.get(theme)).json()["report"]["summary"] == written["summary"]
    assert Counter(stub_llm.stats()["calls"])["answer"] - before["answer"] == 1
    sums = (await client.get("/v1/usage", params={"group_by": "purpose"})).json()["items"]
    assert {item["key"]: item["calls"] for item in sums}["report"] == 1
    await client.delete(documents[1]["links"]["self"])
    assert (await client.get(theme)).json()["report"] is None
    ids = (tenancy.tenant_id, workspace_id, UUID(documents[1]["id"]))
    await attempt(worker.jobs, PurgeDocument(*ids), runs=1)
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        assert await session.scalar(select(func.count()).select_from(ThemeReport)) == 0


async def test_a_report_goes_with_every_document_of_its_theme(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browsing, "REPORTED_PASSAGES", 1)
    workspace_id, documents, themes = await prepared(client, tenancy, index, settings={"theme_reports": True})
    assert (await client.post(f"/v1/workspaces/{workspace_id}/themes/{themes[1]}/report")).status_code == 200
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        sources = await session.scalars(select(ThemeReportSource.version_id))
        assert {str(version_id) for version_id in sources} == {document["version"]["id"] for document in documents[:2]}


async def test_a_model_that_fails_leaves_the_theme(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index, stub_llm: StubServer, settings: Settings,
    owner_database: Database,
) -> None:  # fmt: skip
    chat = await register_stub(stub_llm, owner_database, settings)
    body = {"chat_model": chat, "settings": {"theme_reports": True}}
    workspace_id, _, themes = await prepared(client, tenancy, index, **body)
    theme = f"/v1/workspaces/{workspace_id}/themes/{themes[1]}"
    for fault, status, code in (
        ({"status": 401}, 502, "model_rejected"),
        ({"status": 503}, 503, "model_unavailable"),
        ({"body": "I'm sorry, I cannot help with that."}, 502, "model_refused"),
    ):
        stub_llm.set_faults({"kind": "answer", "name": "fails", "times": 9, **fault})
        response = await client.post(f"{theme}/report")
        assert (response.status_code, response.json()["code"]) == (status, code)
        stub_llm.clear_faults("fails")
    told = (await client.get(theme)).json()
    assert (told["report"], told["theme"]["passages"]) == (None, 2)


async def test_a_report_is_written_once_for_all_who_ask_and_not_for_ever(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index, stub_llm: StubServer, settings: Settings,
    owner_database: Database, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(report_repository, "KEPT", 1)
    chat = await register_stub(stub_llm, owner_database, settings)
    body = {"chat_model": chat, "settings": {"theme_reports": True}}
    workspace_id, _, themes = await prepared(client, tenancy, index, **body)
    urls = [f"/v1/workspaces/{workspace_id}/themes/{theme}/report" for theme in themes[1:]]
    stub_llm.set_faults(
        {"kind": "answer", "name": "slow", "body": "Seals\n\nThey had cracks.", "delay_ms": 1000, "times": 9}
    )
    before = Counter(stub_llm.stats()["calls"])
    answers = [response.json() for response in await asyncio.gather(*(client.post(urls[0]) for _ in range(3)))]
    assert sorted(answer["is_cached"] for answer in answers) == [False, True, True]
    assert Counter(stub_llm.stats()["calls"])["answer"] - before["answer"] == 1
    monkeypatch.setattr(reports, "MAX_SECONDS", 0.3)
    late = await client.post(urls[1])
    assert (late.status_code, late.json()["code"]) == (504, "theme_report_timed_out")
    monkeypatch.undo()
    monkeypatch.setattr(report_repository, "KEPT", 1)
    assert (await client.post(urls[1])).status_code == 200
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        assert await session.scalar(select(func.count()).select_from(ThemeReport)) == 1


@pytest.mark.parametrize("is_wanted", [True, False])
async def test_the_offline_model_quotes_and_nobody_reports_unasked(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index, stranger: httpx.AsyncClient, is_wanted: bool
) -> None:
    workspace_id, _, themes = await prepared(client, tenancy, index, settings={"theme_reports": is_wanted})
    theme = f"/v1/workspaces/{workspace_id}/themes/{themes[1]}"
    assert (await stranger.post(f"{theme}/report")).json()["code"] == "workspace_not_found"
    response = await client.post(f"{theme}/report")
    if not is_wanted:
        assert (response.status_code, response.json()["code"]) == (409, "theme_reports_off")
        return
    report = response.json()
    assert (report["is_extractive"], report["title"]) == (True, (await client.get(theme)).json()["theme"]["label"])
    assert set(report["summary"].split("\n")) == {
        "- Kestrel Polymers makes the seals of the Tideline Sensor in Porto.", f"- {TEXTS[1]}",
    }  # fmt: skip
    asked = {
        "model": f"{workspace_id}:themes",
        "messages": [{"role": "user", "content": "What about the Tideline Sensor?"}],
    }
    door = (await client.post("/v1/openai/chat/completions", json=asked)).json()
    assert "Tideline Sensor" in door["choices"][0]["message"]["content"]
    assert (door["trellis"]["mode"], door["trellis"]["cache"]["hit"]) == ("themes", False)
    missing = f"/v1/workspaces/{workspace_id}/themes/{workspace_id}/report"
    assert (await client.post(missing)).json()["code"] == "theme_not_found"
