"""Opens a workspace to read its themes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

from app.db.base import TenantId, WorkspaceId
from app.domain.queries.service import QueryService
from app.errors import TimedOut
from app.retrieval.themes.browsing import (
    ConceptListing,
    OutsideListing,
    Position,
    ThemeBrowser,
    ThemeDetail,
    ThemeListing,
)
from app.retrieval.themes.concept_store import ConceptPosition

MAX_SECONDS: Final = 20.0


class ThemesTimedOut(TimedOut):
    """Counting what of the themes may be told now took too long."""

    code = "themes_timed_out"
    title = "Reading the themes took too long"


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    limit = asyncio.timeout(MAX_SECONDS)
    try:
        async with limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise ThemesTimedOut(f"It had {MAX_SECONDS:g} seconds; ask for fewer themes.") from None
        raise


class ThemeBrowsing:
    """Every method raises WorkspaceNotFound or WorkspaceDeleting, ThemesTimedOut, and what `ThemeBrowser` says."""

    def __init__(self, queries: QueryService, browser: ThemeBrowser) -> None:
        self._queries = queries
        self._browser = browser

    async def list(
        self,
        place: tuple[TenantId, WorkspaceId],
        *,
        level: int | None,
        after: Position | None,
        limit: int,
    ) -> ThemeListing:
        async with _in_time():
            return await self._browser.list(await self._queries.open(*place), level=level, after=after, limit=limit)

    async def outside(self, place: tuple[TenantId, WorkspaceId], *, after: UUID | None, limit: int) -> OutsideListing:
        async with _in_time():
            return await self._browser.outside(await self._queries.open(*place), after=after, limit=limit)

    async def concepts(
        self, place: tuple[TenantId, WorkspaceId], *, search: str, after: ConceptPosition | None, limit: int
    ) -> ConceptListing:
        async with _in_time():
            workspace = await self._queries.open(*place)
            return await self._browser.concepts(workspace, search=search, after=after, limit=limit)

    async def get(self, place: tuple[TenantId, WorkspaceId], theme_id: UUID) -> ThemeDetail:
        async with _in_time():
            return await self._browser.get(await self._queries.open(*place), theme_id)
