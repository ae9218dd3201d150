"""Words beside those of a question: of the caller, of the corpus, of a model; and keywords that come to nothing."""

import json
from typing import Any

import httpx
import pytest

from app.db.base import WorkspaceId
from app.db.session import Database
from app.retrieval.contract import MODES
from app.settings import Settings
from tests.api.conftest import Index
from tests.api.documents import upload_text
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer

TEXTS = {
    "Supply": "Kestrel Polymers makes the seals of the Tideline Sensor in Porto.",
    "Repair": "Jonas Weber mended the gasket of a pump in the port of Varna.",
    "People": "Kestrel Polymers was founded in Porto by Rui Tavares, who likes boats.",
}
QUESTION = "Who makes the seals?"
REPLY = json.dumps({"synonyms": ["gasket", "seals", "  ", 7, "a" * 200], "narrower": ["O-ring", "Gasket"]})
EMPTY_KEYWORDS = ('{"high_level_keywords": [], "low_level_keywords": []}', "no JSON at all", '{"a": 1}', "")


@pytest.fixture
async def chat(stub_llm: StubServer, owner_database: Database, settings: Settings) -> str:
    return await register_stub(stub_llm, owner_database, settings)


@pytest.fixture
async def workspace_id(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index, stub_llm: StubServer, chat: str
) -> WorkspaceId:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"), chat=chat)
    await index(tenancy, *[await upload_text(client, workspace_id, each, title=title) for title, each in TEXTS.items()])
    stub_llm.reset()
    return workspace_id


async def ask(client: httpx.AsyncClient, workspace_id: WorkspaceId, **body: Any) -> Any:
    response = await client.post(f"/v1/workspaces/{workspace_id}/query", json={"query": QUESTION, **body})
    assert response.status_code == 200, response.text
    return response.json()


def added(answer: Any) -> list[tuple[str, str]]:
    return [(each["term"], each["origin"]) for each in answer["added_terms"]]


@pytest.mark.parametrize("mode", ["lazy", "baseline", "mix", "naive", "auto"])
async def test_a_model_adds_terms_for_one_counted_call(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, stub_llm: StubServer, mode: str
) -> None:
    stub_llm.set_faults({"kind": "answer", "body": REPLY})
    answer = await ask(client, workspace_id, mode=mode, expand="llm")
    assert added(answer) == [("gasket", "llm"), ("O-ring", "llm")]
    assert answer["usage"]["model_calls"] == 1
    assert answer["timings_ms"]["expand"] > 0
    spent = (await client.get("/v1/usage", params={"query_id": answer["id"], "group_by": "purpose"})).json()
    assert [each["calls"] for each in spent["items"] if each["key"] == "expand"] == [1]


async def test_an_added_term_finds_what_the_question_s_words_do_not(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, stub_llm: StubServer
) -> None:
    def words(answer: Any) -> set[str]:
        found = answer["evidence"]["passages"]
        return {each["title"] for each in found if any(source["leg"] == "bm25" for source in each["sources"])}

    assert words(await ask(client, workspace_id, mode="baseline")) == {"Supply"}
    stub_llm.set_faults({"kind": "answer", "body": REPLY})
    answer = await ask(client, workspace_id, mode="baseline", expand="llm")
    assert words(answer) == {"Supply", "Repair"}
    assert answer["evidence"]["passages"][0]["title"] == "Supply"


@pytest.mark.parametrize("reply", ["{}", "sorry", '{"synonyms": "x"}', "[1, 2]", '{"synonyms": ["seals"]}'])
async def test_a_model_without_a_usable_word_adds_nothing_and_says_so(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, stub_llm: StubServer, reply: str
) -> None:
    stub_llm.set_faults({"kind": "answer", "body": reply})
    answer = await ask(client, workspace_id, mode="lazy", expand="llm")
    assert answer["added_terms"] == []
    assert any("No terms were added" in note for note in answer["notes"])
    assert answer["citations"]


@pytest.mark.parametrize("status", [401, 500])
async def test_a_model_that_fails_is_gone_on_without(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, stub_llm: StubServer, status: int
) -> None:
    stub_llm.set_faults({"kind": "answer", "status": status, "times": 9})
    answer = await ask(client, workspace_id, mode="mix", expand="llm")
    assert answer["added_terms"] == []
    assert any("the chat model failed" in note for note in answer["notes"])
    assert answer["citations"]


async def test_without_a_chat_model_its_words_are_refused(client: httpx.AsyncClient, tenancy: Tenancy) -> None:
    url = f"/v1/workspaces/{await tenancy.add_workspace()}/query"
    response = await client.post(url, json={"query": QUESTION, "expand": "llm"})
    assert (response.status_code, response.json()["code"]) == (409, "chat_model_missing")


@pytest.mark.parametrize("mode", ["lazy", "baseline", "mix"])
async def test_the_corpus_adds_what_stands_beside_the_question(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, mode: str
) -> None:
    answer = await ask(
        client, workspace_id, query="Who makes the seals of the Tideline Sensor?", mode=mode, expand="cooccurrence"
    )
    assert ("Kestrel Polymers", "cooccurrence") in added(answer)
    assert answer["usage"]["model_calls"] == 0
    assert not {"seals", "Tideline Sensor"} & {term for term, _ in added(answer)}


@pytest.mark.parametrize("mode", ["lazy", "baseline", "naive"])
async def test_keywords_of_the_caller_are_words_where_nothing_else_takes_them(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, mode: str
) -> None:
    answer = await ask(client, workspace_id, mode=mode, keywords={"low": ["gasket"], "high": ["repair", "gasket"]})
    assert added(answer) == [("gasket", "caller"), ("repair", "caller")]


async def test_keywords_of_the_caller_steer_the_graph_and_are_not_listed(
    client: httpx.AsyncClient, workspace_id: WorkspaceId
) -> None:
    answer = await ask(client, workspace_id, mode="local", keywords={"low": ["Jonas Weber"]})
    assert answer["added_terms"] == []
    assert answer["details"]["keywords"]["low"] == ["Jonas Weber"]


@pytest.mark.parametrize("reply", EMPTY_KEYWORDS)
async def test_a_model_without_keywords_is_replaced_by_rules_and_named(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, stub_llm: StubServer, reply: str
) -> None:
    for mode in ("local", "global", "hybrid", "mix"):
        stub_llm.set_faults({"kind": "keywords", "body": reply, "times": 9})
        answer = await ask(client, workspace_id, mode=mode, keywords="llm")
        assert answer["details"]["keywords"]["low"], mode
        assert any("keywords" in note for note in answer["notes"]), mode
        assert answer["evidence"]["passages"], mode


@pytest.mark.parametrize("query", ["?", "hi", "的", "seal " * 600, "🙂"])
async def test_no_mode_answers_an_odd_question_with_a_silent_nothing(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, query: str
) -> None:
    for mode in (*MODES, "auto"):
        answer = await ask(client, workspace_id, query=query, mode=mode, expand="cooccurrence")
        said = [note for note in answer["notes"] if "offline" not in note]
        assert answer["evidence"]["passages"] or said, mode


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"expand": "synonyms"}, "validation_error"),
        ({"keywords": "llm", "mode": "naive"}, "keywords_not_used"),
        ({"keywords": "llm", "mode": "baseline"}, "keywords_not_used"),
        ({"keywords": "llm", "mode": "auto", "seed_k": 3}, "no_mode_fits"),
    ],
)
async def test_what_no_mode_has_a_use_for_is_refused(
    client: httpx.AsyncClient, tenancy: Tenancy, body: dict[str, Any], code: str
) -> None:
    url = f"/v1/workspaces/{await tenancy.add_workspace(engines=('lazy', 'graph'))}/query"
    response = await client.post(url, json={"query": QUESTION, **body})
    assert (response.status_code, response.json()["code"]) == (422, code), response.text
