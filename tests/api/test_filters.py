"""Filters over HTTP: only what a filter allows lends evidence, in every mode, texts of entities and relations included."""

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.db.base import WorkspaceId
from app.retrieval.contract import GRAPH_MODES
from tests.api.conftest import Index
from tests.api.documents import DIRECT_MODES, upload_text
from tests.factories import Tenancy

FIELDS = {"department": "string", "year": "number", "final": "boolean", "signed": "date", "tags": "string_list"}
# Both speak of the same things, so that the graph blends what they say.
FIRST = "Kestrel Polymers makes the seals of the Tideline Sensor in Porto. Marta Oliveira ordered the Tideline Sensor."
SECOND = (
    "Kestrel Polymers recalled the Tideline Sensor in Varna. Jonas Weber replaced the Tideline Sensor at Quartz Harbor."
)
QUESTION = "What did Kestrel Polymers do with the Tideline Sensor?"
ONLY_FIRST, ONLY_SECOND = ("Porto", "Marta", "Oliveira"), ("Varna", "Weber", "Quartz", "recalled")


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=("lazy", "graph"), settings={"metadata_fields": FIELDS})


@pytest.fixture
def url(workspace_id: WorkspaceId) -> str:
    return f"/v1/workspaces/{workspace_id}/query"


@pytest.fixture
async def documents(client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index) -> Any:
    """Two documents that speak of the same things, and differ in all that a filter can ask for."""
    told = {"department": "quality", "year": 2024, "final": True, "signed": "2024-05-01", "tags": ["seal", "valve"]}
    first = await upload_text(client, workspace_id, FIRST, title="First", metadata=told)
    told = {"department": "sales", "year": 2025.5, "final": False, "signed": "2025-02-01T10:00:00+02:00", "tags": []}
    second = await upload_text(client, workspace_id, SECOND, title="Second", metadata=told, media_type="text/markdown")
    await index(tenancy, first, second)
    return first, second


async def ask(client: httpx.AsyncClient, url: str, **body: Any) -> Any:
    response = await client.post(url, json={"query": QUESTION, **body})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("mode", DIRECT_MODES)
async def test_a_filter_to_one_document_lets_nothing_else_through(
    client: httpx.AsyncClient, url: str, documents: Any, mode: str
) -> None:
    for document, own, other in zip(documents, (ONLY_FIRST, ONLY_SECOND), (ONLY_SECOND, ONLY_FIRST), strict=True):
        answer = await ask(client, url, mode=mode, filter={"document_ids": [document["id"]]})
        evidence = answer["evidence"]
        assert evidence["passages"]
        pieces = [*evidence["passages"], *evidence["entities"], *evidence["relations"]]
        named = {found for piece in pieces for found in piece.get("document_ids", [piece.get("document_id")])}
        assert named == {document["id"]}
        said = json.dumps({"evidence": evidence, "context": answer["context"]}, ensure_ascii=False)
        assert [word for word in other if word in said] == []
        assert any(word in said for word in own)
        if mode in GRAPH_MODES and mode != "naive":
            assert "Tideline Sensor" in [entity["name"] for entity in evidence["entities"]]
            assert all(entity["description"] for entity in evidence["entities"])
            assert all(relation["weight"] == 1.0 for relation in evidence["relations"])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"metadata": {"department": "quality"}}, "First"),
        ({"metadata": {"department": {"in": ["sales", "legal"]}}}, "Second"),
        ({"metadata": {"year": 2024}}, "First"),
        ({"metadata": {"year": {"gt": 2024, "lte": 2025.5}}}, "Second"),
        ({"metadata": {"year": {"in": [2024.0]}}}, "First"),
        ({"metadata": {"final": False}}, "Second"),
        ({"metadata": {"signed": {"lt": "2025-01-01"}}}, "First"),
        ({"metadata": {"signed": "2025-02-01T08:00:00Z"}}, "Second"),
        ({"metadata": {"signed": {"in": ["2024-05-01", "2024-05-02"]}}}, "First"),
        ({"metadata": {"tags": "valve"}}, "First"),
        ({"metadata": {"tags": {"in": ["none", "seal"]}}}, "First"),
        ({"metadata": {"year": {"exists": True}, "department": "sales"}}, "Second"),
        ({"media_types": ["text/markdown"]}, "Second"),
        ({"media_types": ["TEXT/Plain"], "languages": ["en"]}, "First"),
    ],
)
async def test_every_kind_of_condition_narrows(
    client: httpx.AsyncClient, url: str, documents: Any, wanted: Any, expected: str
) -> None:
    for mode in ("baseline", "mix"):
        answer = await ask(client, url, mode=mode, filter=wanted)
        assert {found["title"] for found in answer["evidence"]["passages"]} == {expected}


async def test_documents_are_told_apart_by_the_time_of_their_upload(
    client: httpx.AsyncClient, url: str, documents: Any
) -> None:
    moment = documents[1]["created_at"]
    after = await ask(client, url, mode="baseline", filter={"uploaded_after": moment})
    before = await ask(client, url, mode="baseline", filter={"uploaded_before": moment})
    assert {found["title"] for found in after["evidence"]["passages"]} == {"Second"}
    assert {found["title"] for found in before["evidence"]["passages"]} == {"First"}


@pytest.mark.parametrize("mode", ["baseline", "lazy", "naive", "mix"])
async def test_a_filter_that_nothing_meets_is_an_empty_answer_with_a_note(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, other_tenancy: Tenancy, url: str, documents: Any, mode: str
) -> None:
    """Ids of another tenant are like ids of nobody."""
    theirs = await upload_text(stranger, await other_tenancy.add_workspace(), FIRST)
    answers = []
    for ids in ([theirs["id"]], [str(uuid4()) for _ in range(1000)]):
        answer = await ask(client, url, mode=mode, filter={"document_ids": ids})
        assert answer["evidence"] == {"passages": [], "entities": [], "relations": []}
        assert answer["citations"] == []
        assert "No document of the workspace meets the filter." in answer["notes"]
        answers.append((answer["notes"], answer["withheld"]))
    assert answers[0] == answers[1]


async def test_a_thousand_ids_find_the_one_among_them(client: httpx.AsyncClient, url: str, documents: Any) -> None:
    ids = [str(uuid4()) for _ in range(999)] + [documents[0]["id"]]
    for mode in ("lazy", "mix"):
        answer = await ask(client, url, mode=mode, filter={"document_ids": ids})
        assert {found["title"] for found in answer["evidence"]["passages"]} == {"First"}


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"metadata": {"departmnet": "quality"}}, "filter_field_unknown"),
        ({"metadata": {"year": "2024"}}, "filter_type_mismatch"),
        ({"metadata": {"year": True}}, "filter_type_mismatch"),
        ({"metadata": {"year": 10**400}}, "filter_type_mismatch"),
        ({"metadata": {"final": 1}}, "filter_type_mismatch"),
        ({"metadata": {"department": {"gt": "a"}}}, "filter_type_mismatch"),
        ({"metadata": {"signed": "last year"}}, "filter_type_mismatch"),
        ({"metadata": {"signed": {"gte": "2025-02-30"}}}, "filter_type_mismatch"),
        ({"metadata": {"tags": {"in": ["seal", 2]}}}, "filter_type_mismatch"),
        ({"metadata": {"department": ["quality"]}}, "validation_error"),
        ({"metadata": {"department": {}}}, "validation_error"),
        ({"metadata": {"department": {"like": "q"}}}, "validation_error"),
        ({"metadata": {"department": None}}, "validation_error"),
        ({"document_ids": []}, "validation_error"),
        ({"document_ids": [str(uuid4()) for _ in range(1001)]}, "validation_error"),
        ({"document": "x"}, "validation_error"),
        ({"uploaded_after": "2024-01-01T00:00:00"}, "validation_error"),
        ({"languages": ["english"]}, "validation_error"),
    ],
)
async def test_a_filter_that_cannot_mean_anything_is_refused(
    client: httpx.AsyncClient, url: str, wanted: Any, code: str
) -> None:
    response = await client.post(url, json={"query": QUESTION, "filter": wanted})
    assert (response.status_code, response.json()["code"]) == (422, code), response.text


@pytest.mark.parametrize(
    "metadata",
    [{"year": "2024"}, {"year": 10**400}, {"tags": "seal"}, {"signed": "1.5.2024"}, {"final": 0}, {"department": 7}],
)
async def test_metadata_of_a_declared_field_have_its_type(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, metadata: Any
) -> None:
    documents = f"/v1/workspaces/{workspace_id}/documents"
    refused = await client.post(documents, json={"title": "A", "text": "Some text.", "metadata": metadata})
    assert (refused.status_code, refused.json()["code"]) == (422, "metadata_type_mismatch")
    assert refused.json()["field"] == next(iter(metadata))
    made = await upload_text(client, workspace_id, metadata={"year": None, "colour": metadata})
    changed = await client.patch(f"{documents}/{made['id']}", json={"metadata": metadata})
    replaced = await client.put(f"{documents}/{made['id']}/content", json={"text": "New.", "metadata": metadata})
    assert {changed.json()["code"], replaced.json()["code"]} == {"metadata_type_mismatch"}
    bulk = await client.post(
        f"{documents}/bulk",
        content=json.dumps({"title": "A", "text": "Some text.", "metadata": metadata}),
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert [item["problem"]["code"] for item in bulk.json()["results"]] == ["metadata_type_mismatch"]


async def test_values_from_before_a_declaration_do_not_match_and_break_nothing(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index
) -> None:
    workspace_id = await tenancy.add_workspace()
    values: list[Any] = ["2024", 2024, "today", "2024-13-01", [2024], {"a": 1}, True, None, "2024-02-03"]
    made = [
        await upload_text(client, workspace_id, f"{FIRST} Copy {number}.", title=f"{number}", metadata={"when": value})
        for number, value in enumerate(values)
    ]
    await index(tenancy, *made)
    for kind, wanted, expected in (
        ("number", {"gte": 1}, {"1"}),
        ("date", {"gte": "0001-01-01"}, {"8"}),
        ("boolean", {"eq": True}, {"6"}),
        ("string", {"in": ["today", "2024"]}, {"0", "2"}),
        ("string_list", {"eq": "2024"}, set[str]()),
        ("string", {"exists": False}, {"7"}),
    ):
        settings = {"settings": {"metadata_fields": {"when": kind}}}
        assert (await client.patch(f"/v1/workspaces/{workspace_id}", json=settings)).status_code == 200
        url = f"/v1/workspaces/{workspace_id}/query"
        answer = await ask(client, url, mode="baseline", top_k=20, filter={"metadata": {"when": wanted}})
        assert {found["title"] for found in answer["evidence"]["passages"]} == expected, (kind, wanted)


async def test_a_change_of_metadata_shows_in_the_next_query(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, url: str, documents: Any
) -> None:
    wanted = {"metadata": {"department": "legal"}}
    assert (await ask(client, url, mode="lazy", filter=wanted))["citations"] == []
    path = f"/v1/workspaces/{workspace_id}/documents/{documents[1]['id']}"
    await client.patch(path, json={"metadata": {"department": "legal"}})
    for mode in DIRECT_MODES:
        answer = await ask(client, url, mode=mode, filter=wanted)
        assert {found["title"] for found in answer["evidence"]["passages"]} == {"Second"}, mode
    await client.delete(path)
    for mode in DIRECT_MODES:
        answer = await ask(client, url, mode=mode, filter=wanted)
        assert answer["citations"] == []
        assert answer["evidence"]["entities"] == []
