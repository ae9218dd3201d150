"""What may be believed, from the moment it changes: in the very next query, in every mode, texts of the graph included."""

import json
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from app.db.base import WorkspaceId
from app.db.session import Database
from app.retrieval.contract import GRAPH_MODES
from tests.api.conftest import Index
from tests.api.documents import DIRECT_MODES, set_state, upload_text
from tests.factories import Tenancy

FIRST = "Kestrel Polymers makes the seals of the Tideline Sensor in Porto. Marta Oliveira ordered the Tideline Sensor."
SECOND = (
    "Kestrel Polymers recalled the Tideline Sensor in Varna. Jonas Weber replaced the Tideline Sensor at Quartz Harbor."
)
QUESTION = "What did Kestrel Polymers do with the Tideline Sensor?"
ONLY_SECOND = ("Varna", "Weber", "Quartz", "recalled")
WALKING = [mode for mode in GRAPH_MODES if mode != "naive"]


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=("lazy", "graph"))


async def ask(client: httpx.AsyncClient, workspace_id: WorkspaceId, mode: str, **body: Any) -> Any:
    url = f"/v1/workspaces/{workspace_id}/query"
    response = await client.post(url, json={"query": QUESTION, "mode": mode, **body})
    assert response.status_code == 200, response.text
    return response.json()


def told(answer: Any) -> list[str]:
    """What only the second document says, wherever in the answer."""
    said = json.dumps(answer, ensure_ascii=False)
    return [word for word in ONLY_SECOND if word in said]


async def test_what_is_inserted_shows_and_what_is_deleted_does_not_in_the_next_query(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index
) -> None:
    await index(tenancy, await upload_text(client, workspace_id, FIRST))
    for mode in DIRECT_MODES:
        assert told(await ask(client, workspace_id, mode)) == []
    second = await upload_text(client, workspace_id, SECOND)
    await index(tenancy, second)
    for mode in DIRECT_MODES:
        answer = await ask(client, workspace_id, mode)
        assert told(answer), mode
        assert answer["withheld"] == {}, mode
    await client.delete(second["links"]["self"])
    for mode in DIRECT_MODES:
        answer = await ask(client, workspace_id, mode)
        assert told(answer) == [], mode
        assert answer["evidence"]["passages"], mode
        assert list(answer["withheld"]) == ["deleting"], mode
        answer = await ask(client, workspace_id, mode, filter={"media_types": ["text/plain"]})
        assert answer["withheld"] == {"deleting": 1}, mode


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("not_ready", {"state": "failed"}),
        ("purging", {"state": "failed", "cleanliness": "purging"}),
        ("partial", {"state": "partial"}),
    ],
)
async def test_mixed_support_is_told_by_what_may_be_believed_alone(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index, reason: str, state: Any
) -> None:
    first, second = await upload_text(client, workspace_id, FIRST), await upload_text(client, workspace_id, SECOND)
    await index(tenancy, first, second)
    await set_state(tenancy, second, "graph", **state)
    for mode in GRAPH_MODES:
        answer = await ask(client, workspace_id, mode)
        assert told(answer) == [], mode
        assert list(answer["withheld"]) == [reason], mode
        assert any(reason in note for note in answer["notes"])
        assert {found["document_id"] for found in answer["evidence"]["passages"]} == {first["id"]}
    answer = await ask(client, workspace_id, "mix", filter={"document_ids": [second["id"]]})
    assert answer["withheld"] == ({} if reason == "not_ready" else {reason: 1})
    for mode in WALKING:
        entities = (await ask(client, workspace_id, mode))["evidence"]["entities"]
        assert {name for entity in entities for name in entity["document_ids"]} == {first["id"]}
        assert all(entity["description"] for entity in entities)
    if reason == "partial":
        assert told(await ask(client, workspace_id, "mix", include_partial=True))


async def test_a_type_is_what_may_be_believed_says_too(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index, owner_database: Database
) -> None:
    first, second = await upload_text(client, workspace_id, FIRST), await upload_text(client, workspace_id, SECOND)
    await index(tenancy, first, second)
    blended = text(
        "UPDATE lightrag_graph_nodes SET properties = jsonb_set(properties::jsonb, '{entity_type}', '\"Blended\"')"
        " WHERE workspace = :workspace"
    )
    async with owner_database.system() as session:
        await session.execute(blended, {"workspace": f"w_{workspace_id.hex}"})
    place = f"/v1/workspaces/{workspace_id}/entities"

    async def types() -> set[str]:
        listed = {item["name"]: item for item in (await client.get(place)).json()["items"]}
        one = listed["Tideline Sensor"]
        merge = {"sources": ["Tideline Sensor"], "target": "The Sensor", "dry_run": True}
        preview = (await client.post(f"{place}/merge", json=merge)).json()
        return {one["type"], (await client.get(one["link"])).json()["type"], preview["type"]}

    assert await types() == {"Blended"}
    await set_state(tenancy, second, "graph", state="failed")
    assert "Blended" not in await types()


async def test_nothing_leads_over_a_passage_of_a_deleted_document(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index
) -> None:
    texts = (
        "Marta Oliveira ordered the seals of the Tideline Sensor.",
        "Marta Oliveira met Jonas Weber in spring.",
        "Jonas Weber works at Quartz Harbor in winter.",
        "Quartz Harbor is closed.",
    )
    made = [await upload_text(client, workspace_id, text, title=f"T{number}") for number, text in enumerate(texts)]
    for each in made:
        await index(tenancy, each)
    asked = {"query": "Who ordered the seals of the Tideline Sensor?", "seed_k": 1}
    before = await ask(client, workspace_id, "lazy-wide", **asked)
    assert {"Marta Oliveira", "Jonas Weber"} <= {found["concept"] for found in before["details"]["visited_concepts"]}
    await client.delete(made[1]["links"]["self"])
    after = await ask(client, workspace_id, "lazy-wide", **asked)
    assert "Jonas Weber" not in {found["concept"] for found in after["details"]["visited_concepts"]}
    assert "T1" not in {found["title"] for found in after["evidence"]["passages"]}


async def test_a_link_of_evidence_reads_it(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index
) -> None:
    await index(tenancy, await upload_text(client, workspace_id, f"{FIRST}\n\n{SECOND}\n\nAll of it was said in May."))
    answer = await ask(client, workspace_id, "mix")
    for kind in ("entities", "relations"):
        for piece in answer["evidence"][kind]:
            read = (await client.get(piece["link"])).json()
            assert [read[name] for name in ("name", "source", "target") if name in read] == [
                piece[name] for name in ("name", "source", "target") if name in piece
            ]
    for citation in answer["citations"]:
        read = (await client.get(citation["link"], params={"around": 20})).json()
        around = [*read["before"], read["passage"], *read["after"]]
        assert read["passage"]["id"] == citation["passage_id"]
        assert all(found["document_id"] == citation["document_id"] for found in around)
        assert [found["ordinal"] for found in around] == sorted(found["ordinal"] for found in around)
        for name in ("title", "version_id", "page_start", "char_start", "char_end"):
            assert read["passage"][name] == citation[name]


async def test_auto_counts_on_a_graph_that_may_be_answered_from_only(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index
) -> None:
    document = await upload_text(client, workspace_id, FIRST)
    await index(tenancy, document)
    assert (await ask(client, workspace_id, "auto"))["routing"]["features"]["documents"] == {"lazy": 1, "graph": 1}
    await set_state(tenancy, document, "graph", state="partial")
    routing = (await ask(client, workspace_id, "auto"))["routing"]
    assert (routing["features"]["documents"], routing["features"]["graph_ready"]) == ({"lazy": 1}, False)
    routing = (await ask(client, workspace_id, "auto", include_partial=True))["routing"]
    assert routing["features"]["graph_ready"]


async def test_a_retry_moves_the_corpus_version(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index
) -> None:
    """What was answered from in part is not until it is ready; counts and caches go by the version."""
    document = await upload_text(client, workspace_id, FIRST)
    await index(tenancy, document)
    await set_state(tenancy, document, "graph", state="partial")

    async def version() -> int:
        return int((await ask(client, workspace_id, "baseline"))["details"]["cache"]["corpus_version"])

    before = await version()
    assert (await client.post(f"{document['links']['self']}/retry")).status_code in (200, 202)
    assert await version() > before
