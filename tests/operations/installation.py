"""A small installation filled by real uploads, ingestion, queries and changes of entities, on a database of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from pydantic import SecretStr

from app.bootstrap import Worker, open_worker
from app.db.base import TenantId
from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService
from app.jobs import IndexGraph, ProcessVersion
from app.main import create_app
from app.settings import Settings
from workers.task import attempt

# The last one is uploaded and not worked on: it waits.
FILES = (
    "02-tideline-recall.md",
    "06-elena-petrova.docx",
    "08-sensor-maintenance-zh.txt",
    "01-harbor-works-overview.md",
)
QUESTION = "Who supplied the new seals?"
MODES = ("lazy", "mix", "baseline")


@dataclass(frozen=True)
class Filled:
    """What is in it, and how to come in."""

    urls: DatabaseUrls
    blob_url: str
    tenant_id: TenantId
    api_key: str
    workspace_path: str
    documents: tuple[str, ...]
    waiting: ProcessVersion
    answers: dict[str, list[str]]


def settings_of(urls: DatabaseUrls, redis_url: str, blobs: Path, scratch: Path) -> Settings:
    return Settings(
        database_url=SecretStr(urls.app),
        engine_database_url=SecretStr(urls.engine),
        owner_database_url=SecretStr(urls.owner),
        redis_url=SecretStr(redis_url),
        blob_url=f"file://{blobs}",
        scratch_dir=scratch,
        database_pool_size=4,
        engine_pool_size=4,
    )


@asynccontextmanager
async def serving(settings: Settings, api_key: str) -> AsyncIterator[tuple[Worker, httpx.AsyncClient]]:
    """The worker's parts and a client of the API, which is served in this process."""
    async with open_worker(settings) as worker:
        app = create_app(worker.container)
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            headers = {"Authorization": f"Bearer {api_key}"}
            async with httpx.AsyncClient(transport=transport, base_url="http://trellis/v1", headers=headers) as client:
                yield worker, client


async def fill(urls: DatabaseUrls, settings: Settings, folder: Path) -> Filled:
    """Documents with a graph, a merge of two entities, and answered questions."""
    owner = Database(urls.owner, pool_size=1)
    try:
        tenants = TenantService(owner)
        tenant = await tenants.create_tenant("filled")
        key = await tenants.create_key(tenant.id, name="test", role=Role.ADMIN)
    finally:
        await owner.close()
    async with serving(settings, key) as (worker, client):
        made = await call(client, "POST", "/workspaces", json={"name": "filled", "engines": ["lazy", "graph"]})
        path = f"/workspaces/{made['id']}"
        parts = [("files", (name, (folder / name).read_bytes())) for name in FILES]
        uploaded = await call(client, "POST", f"{path}/documents", files=parts)
        documents = [row["id"] for row in uploaded["documents"]]
        ids = [(tenant.id, UUID(made["id"]), UUID(row["version"]["id"])) for row in uploaded["documents"]]
        for version in ids[:-1]:
            await index(worker, ProcessVersion(*version))
        names = [entity["name"] for entity in (await call(client, "GET", f"{path}/entities"))["items"]]
        await call(client, "POST", f"{path}/entities/merge", json={"sources": names[:1], "target": names[1]})
        answers = await ask(client, path)
    return Filled(
        urls, settings.blob_url, TenantId(tenant.id), key, path, tuple(documents), ProcessVersion(*ids[-1]), answers
    )


async def index(worker: Worker, job: ProcessVersion) -> None:
    """What workers do for an uploaded version."""
    await attempt(worker.jobs, job, runs=1)
    await attempt(worker.jobs, IndexGraph(job.tenant_id, job.workspace_id, job.version_id), runs=1)


async def ask(client: httpx.AsyncClient, path: str) -> dict[str, list[str]]:
    """The documents that each mode cites for the question, by mode."""
    found = {}
    for mode in MODES:
        answer = await call(client, "POST", f"{path}/query", json={"query": QUESTION, "mode": mode})
        found[mode] = sorted({citation["document_id"] for citation in answer["citations"]})
    return found


async def call(client: httpx.AsyncClient, method: str, path: str, **arguments: Any) -> Any:
    response = await client.request(method, path, **arguments)
    assert response.is_success, (method, path, response.status_code, response.text)
    return response.json()


async def answers(settings: Settings, filled: Filled) -> dict[str, list[str]]:
    """What `ask` finds in an installation that holds what `filled` does."""
    async with serving(settings, filled.api_key) as (_, client):
        return await ask(client, filled.workspace_path)
