"""Follows the events of a workspace, by asking Postgres now and then; no transaction is open in between."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from app.db.base import TenantId, WorkspaceId
from app.db.models import Event
from app.db.session import CONNECTION_ERRORS, Database
from app.domain.events.errors import EventIdUnknown
from app.domain.events.repository import EventRepository
from app.domain.workspaces.errors import WorkspaceNotFound
from app.domain.workspaces.repository import WorkspaceRepository

PAGE = 200
POLL_SECONDS = 1.0


class EventFeed:
    def __init__(self, database: Database, tenant_id: TenantId, workspace_id: WorkspaceId) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._workspace_id = workspace_id

    async def check(self, after: int) -> None:
        """Raises WorkspaceNotFound, or EventIdUnknown for an id that cannot have been seen: of another workspace, or from
        before a backup was restored. Waiting for what comes above it would miss all that comes before."""
        async with self._database.tenant(self._tenant_id) as session:
            await WorkspaceRepository(session).get(self._workspace_id)
            last_id = await EventRepository(session).last_id(self._workspace_id)
        if after > last_id:
            raise EventIdUnknown(f"The last event of this workspace has the id {last_id}.", last_event_id=last_id)

    async def read(self, after: int) -> Sequence[Event]:
        """The next events above `after`, a page of them at most. Raises WorkspaceNotFound."""
        async with self._database.tenant(self._tenant_id) as session:
            found = await EventRepository(session).list(self._workspace_id, after=after, limit=PAGE)
            if not found:
                await WorkspaceRepository(session).get(self._workspace_id)
        return found

    async def follow(self, after: int, *, seconds: float, stopping: asyncio.Event) -> AsyncIterator[Sequence[Event]]:
        """Pages of events as they come, empty ones while there are none; until `seconds` are over, the process is told
        to stop, the workspace is gone, or the database: whoever follows comes back."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not stopping.is_set() and loop.time() < deadline:
            try:
                page = await self.read(after)
            except (WorkspaceNotFound, *CONNECTION_ERRORS):
                return
            yield page
            if page:
                after = page[-1].id
            if len(page) < PAGE:
                with suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), POLL_SECONDS)
