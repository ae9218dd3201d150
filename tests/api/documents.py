"""Uploads documents over HTTP and plays the worker's part in their rows."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx
from redis.asyncio import Redis
from sqlalchemy import update

from app.db.base import WorkspaceId
from app.db.models import CorpusVersion, IndexState, LiveVersion
from app.retrieval.contract import MODES, THEME_MODES
from tests.factories import Tenancy

# Those that answer from a document as soon as it is indexed; themes need a map, which has tests of its own.
DIRECT_MODES = [mode for mode in MODES if mode not in THEME_MODES]


async def upload_text(client: httpx.AsyncClient, workspace_id: UUID, text: str = "Some text.", **body: Any) -> Any:
    """The document's representation, as it is read: a new document whatever the text."""
    response = await client.post(
        f"/v1/workspaces/{workspace_id}/documents",
        params={"duplicate": "allow"},
        json={"title": "Some title", "text": text, **body},
    )
    assert response.status_code == 202, response.text
    [document] = response.json()["documents"]
    assert document.pop("duplicate") is False
    return document


async def set_state(tenancy: Tenancy, document: Any, engine: str, **values: Any) -> None:
    """Set columns of an index state; a ready or partial one becomes live, as a worker's last transaction does, which like all
    that change what a query may see moves the corpus version."""
    version_id = UUID(document["version"]["id"])
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        await session.execute(
            update(IndexState)
            .where(
                IndexState.tenant_id == tenancy.tenant_id,
                IndexState.version_id == version_id,
                IndexState.engine == engine,
            )
            .values(**values)
        )
        if values.get("state") in ("ready", "partial"):
            await session.merge(
                LiveVersion(
                    tenant_id=tenancy.tenant_id,
                    document_id=UUID(document["id"]),
                    engine=engine,
                    workspace_id=WorkspaceId(UUID(document["workspace_id"])),
                    version_id=version_id,
                )
            )
        await session.execute(
            update(CorpusVersion)
            .where(
                CorpusVersion.tenant_id == tenancy.tenant_id,
                CorpusVersion.workspace_id == UUID(document["workspace_id"]),
            )
            .values(version=CorpusVersion.version + 1)
        )


async def queued_jobs(redis: "Redis", queue: str) -> list[tuple[str, dict[str, Any]]]:
    """Name and payload of the jobs in a queue, newest first, as the broker holds them."""
    jobs = []
    for raw in await redis.lrange(queue, 0, -1):
        message = json.loads(raw)
        _, payload, _ = json.loads(base64.b64decode(message["body"]))
        jobs.append((message["headers"]["task"], payload))
    return jobs


async def until(condition: Callable[[], Awaitable[Any]]) -> None:
    """Wait for something to come true; the test's own time limit ends a wait that is in vain."""
    while True:
        if await condition():
            return
        await asyncio.sleep(0.05)
