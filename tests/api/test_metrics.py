"""`GET /metrics`: who may read it, and that it says how the installation stands."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from redis.exceptions import ConnectionError as RedisAway
from sqlalchemy import text

from app.bootstrap import Container
from app.db.base import WorkspaceId
from app.db.session import Database
from app.domain.ingestion.figures import InstallationFigures
from app.main import create_app
from tests.api.conftest import Index
from tests.api.documents import set_state, upload_text
from tests.architecture.sources import ROOT
from tests.factories import Tenancy

TOKEN = "a token for watching"
OPERATOR = "a secret for operating, long enough"
Metrics = dict[tuple[str, ...], float]
Scrape = Callable[[], Awaitable[Metrics]]


def parsed(told: str) -> Metrics:
    """Values by name and the values of the labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(told)
        for sample in family.samples
    }


def with_metrics(container: Container, figures: InstallationFigures) -> Any:
    changes = {"metrics_token": SecretStr(TOKEN), "operator_secret": SecretStr(OPERATOR)}
    return create_app(replace(container, settings=container.settings.model_copy(update=changes), figures=figures))


async def ask(app: Any, token: str = TOKEN) -> httpx.Response:
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://trellis") as client:
            return await client.get("/metrics", headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def scrape(container: Container) -> Scrape:
    """What is told now: nothing is remembered from the last time."""

    async def waiting(queue: str) -> int:
        return await container.redis.llen(queue)

    async def run() -> Metrics:
        response = await ask(with_metrics(container, InstallationFigures(container.database, waiting)))
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        return parsed(response.text)

    return run


@pytest.fixture
async def document(client: httpx.AsyncClient, tenancy: Tenancy) -> Any:
    return await upload_text(client, await tenancy.add_workspace(engines=("lazy", "graph")))


async def change(owner_database: Database, statement: str, **parameters: Any) -> None:
    async with owner_database.system() as session:
        await session.execute(text(statement), parameters)


def risen(before: Metrics, after: Metrics, *key: str) -> float:
    return after[key] - before[key]


@pytest.mark.parametrize("presented", ["", "wrong", OPERATOR, "key"])
async def test_only_the_metrics_token_opens_it(container: Container, client: httpx.AsyncClient, presented: str) -> None:
    key = client.headers["authorization"].removeprefix("Bearer ")
    response = await ask(with_metrics(container, container.figures), key if presented == "key" else presented)
    assert (response.status_code, response.json()["code"]) == (401, "invalid_metrics_token")
    assert response.headers["www-authenticate"]


@pytest.mark.parametrize("presented", ["", "None", TOKEN])
async def test_without_the_setting_it_is_closed(container: Container, presented: str) -> None:
    assert (await ask(create_app(container), presented)).status_code == 401


async def test_open_indexes_are_counted_with_their_age(
    scrape: Scrape, tenancy: Tenancy, owner_database: Database, document: Any
) -> None:
    version = UUID(document["version"]["id"])
    before = await scrape()
    assert before["trellis_indexes_open", "lazy", "queued"] >= 1
    await change(
        owner_database,
        "UPDATE index_states SET queued_at = now() - interval '9000 days' WHERE version_id = :id",
        id=version,
    )
    found = await scrape()
    assert found["trellis_indexes_open_oldest_seconds", "lazy", "queued"] >= 9000 * 86_400
    await set_state(tenancy, document, "lazy", state="running")
    await set_state(tenancy, document, "graph", state="failed", cleanliness="purging")
    after = await scrape()
    assert risen(before, after, "trellis_indexes_open", "lazy", "queued") == -1
    assert risen(before, after, "trellis_indexes_open", "lazy", "running") == 1
    assert risen(before, after, "trellis_indexes_open", "graph", "purging") == 1
    await change(owner_database, "UPDATE tenants SET status = 'suspended' WHERE id = :id", id=tenancy.tenant_id)
    assert risen(before, await scrape(), "trellis_indexes_open", "graph", "purging") == 0  # nobody needs to be woken


async def test_deletions_leases_webhooks_and_messages_are_counted(
    scrape: Scrape,
    container: Container,
    client: httpx.AsyncClient,
    tenancy: Tenancy,
    owner_database: Database,
    document: Any,
) -> None:
    workspace_id = WorkspaceId(UUID(document["workspace_id"]))
    hook = await client.post(f"/v1/workspaces/{workspace_id}/webhooks", json={"url": "https://example.com/"})
    assert hook.status_code == 201
    before = await scrape()
    await client.delete(document["links"]["self"])
    await set_state(tenancy, document, "graph", state="failed")  # told of, and due to the webhook
    await change(
        owner_database, "UPDATE workspace_leases SET owner = 'x', expires_at = now() + interval '1 h' WHERE workspace_id = :id",
        id=workspace_id,
    )  # fmt: skip
    await container.redis.lpush("graph", "{}")
    after = await scrape()
    await container.redis.lpop("graph")
    assert risen(before, after, "trellis_deletions_open", "document") == 1
    assert risen(before, after, "trellis_leases_held") == 1
    assert risen(before, after, "trellis_queue_messages", "graph") == 1
    assert risen(before, after, "trellis_queue_messages", "purge") == 1
    assert after["trellis_reachable", "postgres"] == after["trellis_reachable", "redis"] == 1


async def test_due_deliveries_are_counted(
    scrape: Scrape, client: httpx.AsyncClient, tenancy: Tenancy, owner_database: Database, document: Any
) -> None:
    await client.post(f"/v1/workspaces/{document['workspace_id']}/webhooks", json={"url": "https://example.com/"})
    before = await scrape()
    for engine in ("lazy", "graph"):
        await set_state(tenancy, document, engine, state="failed")
    await change(
        owner_database, "UPDATE webhook_deliveries SET next_attempt_at = now() - interval '9000 days' WHERE tenant_id = :id",
        id=tenancy.tenant_id,
    )  # fmt: skip
    after = await scrape()
    assert risen(before, after, "trellis_webhook_deliveries_due") == 1
    assert after["trellis_webhook_deliveries_due_oldest_seconds",] >= 9000 * 86_400


async def test_requests_jobs_stages_tokens_and_pools_are_told(
    scrape: Scrape, client: httpx.AsyncClient, tenancy: Tenancy, document: Any, index: Index
) -> None:
    before = await scrape()
    await index(tenancy, document)
    await client.request("INVENTED", "/v1/me")
    await client.get(document["links"]["self"])
    after = await scrape()

    def rose(*key: str) -> bool:
        return after[key] > before.get(key, 0)

    read = "/v1/workspaces/{workspace_id}/documents/{document_id}"
    assert rose("trellis_request_seconds_count", "GET", read, "2xx")
    assert any(key[:2] == ("trellis_request_seconds_count", "other") for key in after)
    assert not any("INVENTED" in key for key in after)
    for job in ("ingestion.process_version", "ingestion.index_graph"):
        assert rose("trellis_job_seconds_count", job, "done")
    for stage in ("parse", "embed", "index", "extract", "merge"):
        assert rose("trellis_ingestion_stage_seconds_count", stage)
    assert any(key[0] == "trellis_model_tokens_total" and rose(*key) for key in after)
    for pool, size in (("app", 5), ("engine", 4)):
        assert after["trellis_pool_size", pool] == size
        assert 0 <= after["trellis_pool_used", pool] <= size
        assert rose("trellis_pool_wait_seconds_count", pool)


async def test_what_is_away_is_told_and_the_rest_goes_on(container: Container) -> None:
    async def no_answer(queue: str) -> int:
        raise RedisAway(queue)

    nowhere = Database("postgresql://trellis_app@127.0.0.1:1/nothing", pool_size=1)
    response = await ask(with_metrics(container, InstallationFigures(nowhere, no_answer)))
    await nowhere.close()
    found = parsed(response.text)
    assert (found["trellis_reachable", "postgres"], found["trellis_reachable", "redis"]) == (0, 0)
    assert not any(name[0] in ("trellis_indexes_open", "trellis_queue_messages") for name in found)
    assert "process_cpu_seconds_total" in response.text


def test_processes_behind_one_port_are_summed_up(tmp_path: Path) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    count = (
        "from app import metrics; metrics.count_sweep({'queued_lazy': 2}, {'queued_lazy': 1}); "
        "metrics.note_pool('app', used=3, size=5, waited_seconds=0.2)"
    )
    tell = "from app import metrics; print(metrics.exposition({}).decode())"
    for code in (count, count):
        subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True)
    told = subprocess.run(
        [sys.executable, "-c", tell], env=environment, cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    found = parsed(told)
    assert found["trellis_sweep_found_total", "queued_lazy"] == 4
    assert found["trellis_sweep_handled_total", "queued_lazy"] == 2
    assert found["trellis_pool_wait_seconds_count", "app"] == 2
    # They have ended, whichever way, and hold no connection any more.
    assert ("trellis_pool_used", "app") not in found
