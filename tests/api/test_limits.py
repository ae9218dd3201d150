"""Limits of a plan hold for every writer and every process, and say what they are."""

import asyncio
import secrets
from typing import Any
from uuid import UUID

import httpx
import pytest
from redis.asyncio import Redis
from sqlalchemy import text

from app.bootstrap import Worker
from app.db.models import UsageEvent
from app.db.session import Database
from app.domain.limits.plans import PlanService
from app.domain.limits.rates import RequestRates
from app.domain.tenants.service import TenantService
from app.jobs import IndexGraph, ProcessVersion, PurgeDocument
from app.settings import Settings
from tests.api.conftest import Connect, Index
from tests.api.documents import queued_jobs, upload_text
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer
from tests.workers.fleet import forget_queued
from workers.task import attempt


async def give_plan(tenancy: Tenancy, **limits: int | None) -> str:
    plans = PlanService(tenancy.owner_database)
    name = f"plan {secrets.token_hex(4)}"
    await plans.put(name, limits)
    await plans.assign(tenancy.tenant_id, name)
    return name


@pytest.fixture
async def quiet(settings: Settings) -> None:
    """Turns are those of this test's tenants."""
    await forget_queued(settings)


def job_of(tenancy: Tenancy, document: Any) -> ProcessVersion:
    return ProcessVersion(tenancy.tenant_id, UUID(document["workspace_id"]), UUID(document["version"]["id"]))


async def test_requests_of_a_minute_are_counted_by_tenant(
    client: httpx.AsyncClient, connect: Connect, stranger: httpx.AsyncClient, tenancy: Tenancy
) -> None:
    await give_plan(tenancy, requests_per_minute=5)
    second_key = await connect(tenancy)
    statuses = [(await caller.get("/v1/me")).status_code for caller in (client, second_key) * 3]
    assert statuses == [200] * 5 + [429]
    refused = await client.get("/v1/me")
    assert (refused.json()["code"], refused.json()["limit"]) == ("rate_limited", 5)
    assert 1 <= int(refused.headers["retry-after"]) <= 61
    assert (await stranger.get("/v1/me")).status_code == 200


async def test_while_redis_is_away_requests_are_not_limited(tenancy: Tenancy) -> None:
    redis = Redis.from_url("redis://127.0.0.1:1/0", socket_connect_timeout=0.2)
    rates = RequestRates(redis)
    for _ in range(5):
        await rates.count(tenancy.tenant_id, 1)
    await redis.aclose()


async def test_of_many_uploads_at_once_exactly_those_that_fit_are_taken(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker
) -> None:
    workspaces = [await tenancy.add_workspace() for _ in range(3)]
    await give_plan(tenancy, documents=4)

    async def upload(number: int) -> httpx.Response:
        body = {"title": f"Number {number}", "text": f"Text number {number}."}
        return await client.post(f"/v1/workspaces/{workspaces[number % 3]}/documents", json=body)

    answers = await asyncio.gather(*(upload(number) for number in range(10)))
    assert sorted(answer.status_code for answer in answers) == [202] * 4 + [403] * 6
    refusal = next(answer.json() for answer in answers if answer.status_code == 403)
    facts = {name: refusal[name] for name in ("code", "limit", "maximum", "used", "resets_at")}
    assert facts == {"code": "quota_exceeded", "limit": "documents", "maximum": 4, "used": 4, "resets_at": None}
    # Nothing of a refused upload is kept.
    assert len(await worker.container.blobs.list(f"{tenancy.tenant_id}/")) == 4
    assert (await standing(client))["documents"] == {"maximum": 4, "used": 4, "resets_at": None}


async def standing(client: httpx.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get("/v1/usage")).json()["limits"]
    return found


async def test_what_is_removed_makes_room(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker, index: Index
) -> None:
    workspace_id = await tenancy.add_workspace()
    await give_plan(tenancy, documents=1, stored_bytes=100)
    document = await upload_text(client, workspace_id, "x" * 60)
    await index(tenancy, document)
    body = {"title": "Another", "text": "y" * 60}
    full = await client.post(f"/v1/workspaces/{workspace_id}/documents", json=body)
    assert full.json()["code"] == "quota_exceeded"
    await client.delete(document["links"]["self"])
    await attempt(worker.jobs, PurgeDocument(tenancy.tenant_id, workspace_id, UUID(document["id"])), runs=1)
    assert (await standing(client))["stored_bytes"]["used"] == 0
    assert (await client.post(f"/v1/workspaces/{workspace_id}/documents", json=body)).status_code == 202
    await give_plan(tenancy, stored_bytes=100)
    bytes_full = await client.post(f"/v1/workspaces/{workspace_id}/documents", json={"title": "Z", "text": "z" * 60})
    assert (bytes_full.json()["limit"], bytes_full.json()["used"]) == ("stored_bytes", 60)


async def test_a_serving_role_cannot_reset_a_counter(tenancy: Tenancy) -> None:
    for table in ("tenant_totals", "tenant_months", "tenant_turns"):
        with pytest.raises(Exception, match="permission denied"):
            async with tenancy.database.tenant(tenancy.tenant_id) as session:
                await session.execute(text(f"DELETE FROM {table}"))
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        changed = await session.execute(text("UPDATE plans SET documents = NULL RETURNING name"))
        assert changed.all() == []


@pytest.mark.usefixtures("quiet")
async def test_a_spent_budget_pauses_work_and_refuses_questions(
    client: httpx.AsyncClient,
    tenancy: Tenancy,
    worker: Worker,
    stub_llm: StubServer,
    owner_database: Database,
    settings: Settings,
) -> None:
    embedding = await register_stub(stub_llm, owner_database, settings, role="embedding", dimension=384)
    workspace_id = await tenancy.add_workspace(embedding=embedding)
    offline_id = await tenancy.add_workspace()
    plan = await give_plan(tenancy, model_tokens_per_month=100)
    await spend(tenancy, workspace_id, embedding, 100)
    paused = await upload_text(client, workspace_id, "A document that must wait.")
    assert await worker.jobs.choose(job_of(tenancy, paused)) is None
    state = (await client.get(paused["links"]["self"])).json()["engines"]["lazy"]
    assert (state["state"], state["stage"], state["attempts"]) == ("queued", "waiting_for_budget", 0)
    asked = await client.post(f"/v1/workspaces/{workspace_id}/query", json={"query": "What?", "mode": "baseline"})
    assert asked.status_code == 403
    assert (asked.json()["code"], asked.json()["limit"]) == ("quota_exceeded", "model_tokens_per_month")
    assert asked.json()["used"] == 100
    assert asked.json()["resets_at"].endswith("-01T00:00:00Z")
    drawn = await client.get(f"/v1/workspaces/{workspace_id}/concepts/graph", params={"query": "What?"})
    assert (drawn.status_code, drawn.json()["code"]) == (403, "quota_exceeded")
    # Offline models cost nothing.
    free = await upload_text(client, offline_id, "A document that costs nothing.")
    assert await worker.jobs.choose(job_of(tenancy, paused)) == job_of(tenancy, free)
    question = {"query": "What?", "mode": "baseline"}
    assert (await client.post(f"/v1/workspaces/{offline_id}/query", json=question)).status_code == 200
    await PlanService(owner_database).put(plan, {"model_tokens_per_month": 1000})
    assert await worker.jobs.choose(job_of(tenancy, paused)) == job_of(tenancy, paused)
    assert await attempt(worker.jobs, job_of(tenancy, paused), runs=1) is None
    assert (await client.get(paused["links"]["self"])).json()["status"] == "ready"


async def spend(tenancy: Tenancy, workspace_id: UUID, model: str, tokens: int) -> None:
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        profile_id = await session.scalar(text("SELECT id FROM model_profiles WHERE name = :name"), {"name": model})
        session.add(
            UsageEvent(
                tenant_id=tenancy.tenant_id, workspace_id=workspace_id, profile_id=profile_id, purpose="check",
                calls=1, tokens_in=tokens, tokens_out=0, is_estimated=False,
            )
        )  # fmt: skip


@pytest.mark.usefixtures("quiet")
async def test_tenants_take_turns_whatever_order_their_messages_are_in(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, tenancy: Tenancy, other_tenancy: Tenancy, worker: Worker
) -> None:
    mine, theirs = await tenancy.add_workspace(), await other_tenancy.add_workspace()
    many = [await upload_text(client, mine, f"Text number {number}.") for number in range(6)]
    one = await upload_text(stranger, theirs)
    messages = [job_of(tenancy, document) for document in many] + [job_of(other_tenancy, one)]
    served = [await worker.jobs.choose(message) for message in messages]
    # The one that came last is second, and every message has found something to do.
    assert served[:2] == [job_of(tenancy, many[0]), job_of(other_tenancy, one)]
    assert {str(job) for job in served} == {str(message) for message in messages}
    assert await worker.jobs.choose(messages[0]) is None


@pytest.mark.usefixtures("quiet")
async def test_no_more_of_a_tenant_are_ingested_at_once_than_its_plan_allows(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker, redis_url: str
) -> None:
    workspace_id = await tenancy.add_workspace()
    await give_plan(tenancy, concurrent_ingestions=2)
    documents = [await upload_text(client, workspace_id, f"Text number {number}.") for number in range(4)]
    messages = [job_of(tenancy, document) for document in documents]
    chosen = await asyncio.gather(*(worker.jobs.choose(message) for message in messages))
    running = [job for job in chosen if job is not None]
    assert len(running) == 2
    redis = Redis.from_url(redis_url)
    await redis.delete("ingest")
    assert await attempt(worker.jobs, running[0], runs=1) is None
    await worker.jobs.follow_up(running[0])
    # Its own message is used up, so the one that waits is called.
    assert len(await queued_jobs(redis, "ingest")) == 1
    assert await worker.jobs.choose(running[0]) not in (None, *running)
    await redis.aclose()


@pytest.mark.usefixtures("quiet")
async def test_a_dead_worker_s_document_is_taken_over_before_the_queue(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker, owner_database: Database
) -> None:
    workspace_id = await tenancy.add_workspace()
    dead = await upload_text(client, workspace_id, "Left behind.")
    await upload_text(client, workspace_id, "Queued.")
    async with owner_database.tenant(tenancy.tenant_id) as session:
        await session.execute(
            text(
                "UPDATE index_states SET state = 'running', lease_owner = 'gone', lease_expires_at = now() - interval '1s'"
                " WHERE version_id = :id"
            ),
            {"id": dead["version"]["id"]},
        )
    assert await worker.jobs.choose(job_of(tenancy, dead)) == job_of(tenancy, dead)


@pytest.mark.usefixtures("quiet")
async def test_work_of_a_suspended_tenant_has_no_turn(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker, owner_database: Database
) -> None:
    document = await upload_text(client, await tenancy.add_workspace())
    await TenantService(owner_database).suspend(tenancy.tenant_id)
    assert await worker.jobs.choose(job_of(tenancy, document)) is None
    await TenantService(owner_database).resume(tenancy.tenant_id)
    assert await worker.jobs.choose(job_of(tenancy, document)) == job_of(tenancy, document)


@pytest.mark.usefixtures("quiet")
async def test_a_graph_has_its_turn_after_its_text(client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker) -> None:
    document = await upload_text(client, await tenancy.add_workspace(engines=("lazy", "graph")))
    job = job_of(tenancy, document)
    graph = IndexGraph(job.tenant_id, job.workspace_id, job.version_id)
    assert await worker.jobs.choose(graph) is None
    await attempt(worker.jobs, job, runs=1)
    assert await worker.jobs.choose(graph) == graph


async def test_an_estimate_is_told_before_anything_is_spent(
    client: httpx.AsyncClient,
    tenancy: Tenancy,
    worker: Worker,
    index: Index,
    stub_llm: StubServer,
    owner_database: Database,
    settings: Settings,
) -> None:
    chat = await register_stub(stub_llm, owner_database, settings, price_input=1.0, price_output=4.0)
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"), chat=chat, settings={"chunk_tokens": 200})
    await give_plan(tenancy, model_tokens_per_month=50)
    sentences = " ".join(f"Captain number {number} left the port of Lindau in spring." for number in range(80))
    body = {"title": "A long one", "text": sentences}
    estimate = (await client.post(f"/v1/workspaces/{workspace_id}/documents/estimate", json=body)).json()
    assert estimate["chunks"] == estimate["model_calls"] > 2
    assert estimate["cost"] == pytest.approx((estimate["tokens_in"] + 4 * estimate["tokens_out"]) / 1_000_000)
    assert (estimate["fits_budget"], estimate["model_tokens_left"], estimate["is_measured"]) == (False, 50, False)
    assert stub_llm.stats()["calls"] == {}
    assert await worker.container.blobs.list(f"{tenancy.tenant_id}/") == []
    await give_plan(tenancy)
    document = await upload_text(client, workspace_id, sentences, title="A long one")
    await index(tenancy, document)
    assert stub_llm.stats()["calls"]["extract"] == estimate["model_calls"]


async def test_an_estimate_says_which_file_cannot_be_read(client: httpx.AsyncClient, tenancy: Tenancy) -> None:
    workspace_id = await tenancy.add_workspace()
    files = [("files", ("good.txt", b"Some text.", "text/plain")), ("files", ("empty.txt", b"", "text/plain"))]
    estimate = (await client.post(f"/v1/workspaces/{workspace_id}/documents/estimate", files=files)).json()
    assert [file["error_code"] for file in estimate["files"]] == [None, "empty_document"]
    assert (estimate["model_calls"], estimate["cost"]) == (0, None)
