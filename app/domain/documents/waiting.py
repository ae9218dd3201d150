"""Waits for a document to come to rest, by asking Postgres now and then; no transaction is open in between."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.domain.documents.records import FINAL_STATUSES, DocumentRecord
from app.domain.documents.repository import DocumentRepository

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 1.0


async def read_when_final(
    database: Database,
    tenant_id: TenantId,
    workspace_id: WorkspaceId,
    document_id: UUID,
    *,
    seconds: float,
    is_abandoned: Callable[[], Awaitable[bool]],
) -> DocumentRecord:
    """The document once its status is final, or as it is after `seconds` or when nobody waits any more.

    Raises DocumentNotFound, also for a document that is deleted while waiting.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    pause = FIRST_PAUSE_SECONDS
    while asyncio.get_running_loop().time() + pause < deadline:
        async with database.tenant(tenant_id) as session:
            status = await DocumentRepository(session, workspace_id).status(document_id)
        if status in FINAL_STATUSES or await is_abandoned():
            break
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
    async with database.tenant(tenant_id) as session:
        return await DocumentRepository(session, workspace_id).get(document_id)
