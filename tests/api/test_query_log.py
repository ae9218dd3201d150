"""The log of queries: what is kept, who may read it, what people say of answers, and that it goes with what it names."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import text

from app.bootstrap import Container, Worker
from app.db.base import WorkspaceId
from app.db.session import Database
from app.domain.queries.log import is_sampled
from app.domain.queries.log_repository import forget_queries
from app.domain.tenants.records import Role
from app.jobs import PurgeDocument, PurgeWorkspace
from tests.api.conftest import Connect, Index
from tests.api.documents import upload_text
from tests.factories import Tenancy
from workers.task import attempt

QUESTION = "Who makes the seals of the Tideline Sensor?"
TABLES = ("queries", "query_evidence", "query_feedback", "query_verdicts")


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace()


@pytest.fixture
def url(workspace_id: WorkspaceId) -> str:
    return f"/v1/workspaces/{workspace_id}"


@pytest.fixture
async def documents(client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index) -> list[Any]:
    texts = ("Kestrel Polymers makes the seals of the Tideline Sensor.", "The Tideline Sensor was sealed in Porto.")
    made = [await upload_text(client, workspace_id, each) for each in texts]
    await index(tenancy, *made)
    return made


async def ask(client: httpx.AsyncClient, url: str, **body: Any) -> Any:
    response = await client.post(f"{url}/query", json={"query": QUESTION, **body})
    assert response.status_code == 200, response.text
    return response.json()


async def logged(client: httpx.AsyncClient, url: str, answer: Any) -> Any:
    response = await client.get(f"{url}/queries/{answer['id']}")
    assert response.status_code == 200, response.text
    return response.json()


async def counted(database: Database, tenancy: Tenancy) -> dict[str, int]:
    async with database.tenant(tenancy.tenant_id) as session:
        return {table: await session.scalar(text(f"SELECT count(*) FROM {table}")) or 0 for table in TABLES}


async def test_a_query_is_logged_without_its_text(client: httpx.AsyncClient, url: str, documents: Any) -> None:
    answer = await ask(client, url, mode="auto")
    found = await logged(client, url, answer)
    assert (found["mode_asked"], found["mode"], found["kind"]) == ("auto", answer["routing"]["mode"], "fact")
    assert found["text"] is None
    passages = answer["evidence"]["passages"]
    assert [each["passage_id"] for each in found["evidence"]] == [each["passage_id"] for each in passages]
    assert {each["document_id"] for each in found["evidence"]} == {each["id"] for each in documents}
    assert (found["passages"], found["embedding_calls"]) == (len(passages), answer["usage"]["embedding_calls"])
    assert found["milliseconds"] > 0


async def test_the_workspace_decides_what_is_kept(client: httpx.AsyncClient, url: str, documents: Any) -> None:
    await client.patch(url, json={"settings": {"query_log_text": True}})
    assert (await logged(client, url, await ask(client, url)))["text"] == QUESTION
    await client.patch(url, json={"settings": {"query_log_share": 0}})
    missing = await client.get(f"{url}/queries/{(await ask(client, url))['id']}")
    assert (missing.status_code, missing.json()["code"]) == (404, "query_not_found")


def test_the_sample_is_about_the_share_that_was_asked_for() -> None:
    drawn = sum(is_sampled(uuid4(), 0.25) for _ in range(4000))
    assert 800 < drawn < 1200
    assert is_sampled(uuid4(), 1.0)
    assert not is_sampled(uuid4(), 0.0)


async def test_the_list_goes_page_by_page_from_the_newest(client: httpx.AsyncClient, url: str, documents: Any) -> None:
    asked = [(await ask(client, url))["id"] for _ in range(3)]
    first = (await client.get(f"{url}/queries", params={"limit": 2})).json()
    rest = (await client.get(f"{url}/queries", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [each["id"] for each in first["items"] + rest["items"]] == asked[::-1]
    assert rest["next_cursor"] is None


async def test_readers_rate_and_editors_read(
    client: httpx.AsyncClient, connect: Connect, stranger: httpx.AsyncClient, tenancy: Tenancy, url: str, documents: Any
) -> None:
    reader, editor = await connect(tenancy, Role.READER), await connect(tenancy, Role.EDITOR)
    answer = await ask(reader, url)
    rated = await reader.post(f"{url}/queries/{answer['id']}/feedback", json={"rating": 2})
    assert rated.status_code == 200, rated.text
    for path in ("/queries", f"/queries/{answer['id']}", "/queries/report"):
        assert (await reader.get(url + path)).json()["code"] == "role_required"
        assert (await editor.get(url + path)).status_code == 200
        assert (await stranger.get(url + path)).status_code == 404
    assert (await stranger.post(f"{url}/queries/{answer['id']}/feedback", json={"rating": 1})).status_code == 404


async def test_each_caller_has_one_word_on_an_answer(
    client: httpx.AsyncClient, connect: Connect, tenancy: Tenancy, url: str, documents: Any
) -> None:
    answer = await ask(client, url)
    place = f"{url}/queries/{answer['id']}/feedback"
    passage = answer["evidence"]["passages"][0]["passage_id"]
    given = {"rating": 4, "comment": "Nearly.", "evidence": [{"passage_id": passage, "is_relevant": True}]}
    for _ in range(2):
        said = (await client.post(place, json=given)).json()
        assert {name: said[name] for name in given} == given
    await (await connect(tenancy, Role.READER)).post(place, json={"rating": 1})
    await client.post(place, json={"rating": 5})
    assert [(each["rating"], each["evidence"]) for each in (await logged(client, url, answer))["feedback"]] == [
        (5, []),
        (1, []),
    ]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"rating": 0}, "validation_error"),
        ({"rating": 6}, "validation_error"),
        ({"rating": 3, "evidence": [{"passage_id": 1, "is_relevant": True}] * 2}, "validation_error"),
        ({"rating": 3, "evidence": [{"passage_id": 2**62, "is_relevant": True}]}, "not_in_evidence"),
    ],
)
async def test_feedback_that_cannot_be_is_refused_and_changes_nothing(
    client: httpx.AsyncClient, url: str, documents: Any, body: dict[str, Any], code: str
) -> None:
    answer = await ask(client, url)
    refused = await client.post(f"{url}/queries/{answer['id']}/feedback", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, code)
    assert (await logged(client, url, answer))["feedback"] == []


async def test_the_report_names_the_mode_that_was_rated_best(
    client: httpx.AsyncClient, url: str, documents: Any
) -> None:
    for mode, rating in (("baseline", 5), ("lazy", 2), ("baseline", 4)):
        answer = await ask(client, url, mode=mode)
        passage = answer["evidence"]["passages"][0]["passage_id"]
        said = {"rating": rating, "evidence": [{"passage_id": passage, "is_relevant": rating > 2}]}
        await client.post(f"{url}/queries/{answer['id']}/feedback", json=said)
    await ask(client, url, mode="lazy-fast")
    [kind] = (await client.get(f"{url}/queries/report", params={"min_ratings": 2})).json()["kinds"]
    assert (kind["kind"], kind["best_mode"]) == ("fact", "baseline")
    told = [(each["mode"], each["queries"], each["ratings"], each["mean_rating"]) for each in kind["modes"]]
    assert told == [("baseline", 2, 2, 4.5), ("lazy", 1, 1, 2.0), ("lazy-fast", 1, 0, None)]
    assert [each["relevant_share"] for each in kind["modes"]] == [1.0, 0.0, None]
    [few] = (await client.get(f"{url}/queries/report")).json()["kinds"]
    assert few["best_mode"] is None


async def rate(client: httpx.AsyncClient, url: str) -> Any:
    answer = await ask(client, url)
    verdicts = [{"passage_id": each["passage_id"], "is_relevant": True} for each in answer["evidence"]["passages"]]
    await client.post(f"{url}/queries/{answer['id']}/feedback", json={"rating": 3, "evidence": verdicts})
    return answer


async def test_a_deleted_document_leaves_the_log(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, url: str, documents: Any, worker: Worker
) -> None:
    answer = await rate(client, url)
    gone, kept = (UUID(each["id"]) for each in documents)
    await client.delete(documents[0]["links"]["self"])
    await attempt(worker.jobs, PurgeDocument(tenancy.tenant_id, workspace_id, gone), runs=1)
    found = await logged(client, url, answer)
    assert {each["document_id"] for each in found["evidence"]} == {str(kept)}
    left = {each["passage_id"] for each in found["evidence"]}
    assert {each["passage_id"] for each in found["feedback"][0]["evidence"]} == left


async def test_a_deleted_workspace_leaves_no_log(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, url: str, documents: Any, worker: Worker, database: Database,
) -> None:  # fmt: skip
    await rate(client, url)
    assert min((await counted(database, tenancy)).values()) > 0
    await client.delete(url)
    await attempt(worker.jobs, PurgeWorkspace(tenancy.tenant_id, workspace_id), runs=1)
    assert await counted(database, tenancy) == dict.fromkeys(TABLES, 0)


async def test_what_was_kept_for_its_time_is_forgotten(
    client: httpx.AsyncClient, tenancy: Tenancy, url: str, documents: Any, database: Database, owner_database: Database
) -> None:
    old, new = await rate(client, url), await rate(client, url)
    async with owner_database.system() as session:
        await session.execute(
            text("UPDATE queries SET created_at = now() - interval '400 days' WHERE id = :id"), {"id": UUID(old["id"])}
        )
    async with database.system() as session:
        assert await forget_queries(session, timedelta(days=399), 1000) == 1
    listed = (await client.get(f"{url}/queries")).json()["items"]
    assert [each["id"] for each in listed] == [new["id"]]


async def test_a_log_that_cannot_be_written_fails_no_query(
    client: httpx.AsyncClient, url: str, documents: Any, container: Container, owner_database: Database
) -> None:
    async with owner_database.system() as session:
        await session.execute(text("LOCK TABLE queries IN ACCESS EXCLUSIVE MODE"))
        answer = await ask(client, url)
    assert answer["citations"]
    assert (await client.get(f"{url}/queries")).json()["items"] == []


async def test_modes_are_compared_side_by_side(client: httpx.AsyncClient, url: str, documents: Any) -> None:
    body = {"query": QUESTION, "modes": ["baseline", "mix", "lazy", "auto"]}
    response = await client.post(f"{url}/queries/compare", json=body)
    assert response.status_code == 200, response.text
    found = response.json()
    baseline, mix, lazy, auto = found["results"]
    assert (mix["answer"], mix["problem"]["code"]) == (None, "engine_off")
    assert auto["answer"]["mode"] == auto["answer"]["routing"]["mode"]
    assert baseline["answer"]["passages"][0]["text"]
    assert [each["answer"]["usage"]["embedding_calls"] for each in (baseline, lazy, auto)] == [1, 0, 0]
    assert found["overlap"]["modes"] == body["modes"]
    assert found["overlap"]["passages"][0] == [1.0, 0.0, 1.0, 1.0]
    assert found["overlap"]["documents"][1] == [0.0] * 4
    kept = await logged(client, url, baseline["answer"])
    assert kept["comparison_id"] == found["id"]


@pytest.mark.parametrize(
    ("modes", "code"),
    [
        (["baseline", "best"], "unknown_mode"),
        (["baseline"], "validation_error"),
        (["lazy", "lazy"], "validation_error"),
        (["baseline", "lazy", "lazy-fast", "lazy-wide", "lazy-balanced", "mix", "local"], "validation_error"),
    ],
)
async def test_a_comparison_that_makes_no_sense_is_refused(
    client: httpx.AsyncClient, url: str, modes: list[str], code: str
) -> None:
    response = await client.post(f"{url}/queries/compare", json={"query": QUESTION, "modes": modes})
    assert (response.status_code, response.json()["code"]) == (422, code)


async def test_auto_may_be_the_default_and_keeps_to_the_workspace_s_settings(
    client: httpx.AsyncClient, url: str, documents: Any
) -> None:
    changed = await client.patch(url, json={"default_mode": "auto"})
    assert changed.json()["default_mode"] == "auto", changed.text
    answer = await ask(client, url)
    assert answer["routing"]["mode"] == answer["mode"] == "baseline"
    assert answer["usage"]["model_calls"] == 0
    await client.patch(url, json={"settings": {"auto_overrides": {"fact": "lazy-fast"}}})
    assert (await ask(client, url))["mode"] == "lazy-fast"
    assert (await ask(client, url, seed_k=3, mode="auto"))["mode"] == "lazy-fast"
    assert (await ask(client, url, mode="baseline"))["routing"] is None
    listed = (await client.get("/v1/modes")).json()["modes"]
    assert {"name": "auto", "engine": None} in listed


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"auto_modes": ["best"]}, "validation_error"),
        ({"auto_overrides": {"riddle": "lazy"}}, "validation_error"),
        ({"auto_modes": ["mix"]}, "no_mode_fits"),
        ({"auto_modes": ["lazy-wide"], "auto_cheap_only": True}, "no_mode_fits"),
        ({"query_log_share": 1.5}, "validation_error"),
    ],
)
async def test_settings_that_leave_auto_nothing_are_refused(
    client: httpx.AsyncClient, url: str, changed: dict[str, Any], code: str
) -> None:
    response = await client.patch(url, json={"settings": changed})
    assert (response.status_code, response.json()["code"]) == (422, code), response.text
