"""Opens a workspace to read its themes."""

from uuid import UUID

from app.db.base import TenantId, WorkspaceId
from app.domain.queries.service import QueryService
from app.retrieval.themes.browsing import ConceptListing, Position, ThemeBrowser, ThemeDetail, ThemeListing
from app.retrieval.themes.concept_store import ConceptPosition


class ThemeBrowsing:
    """Every method raises WorkspaceNotFound or WorkspaceDeleting, and what `ThemeBrowser` says."""

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
        return await self._browser.list(await self._queries.open(*place), level=level, after=after, limit=limit)

    async def concepts(
        self, place: tuple[TenantId, WorkspaceId], *, search: str, after: ConceptPosition | None, limit: int
    ) -> ConceptListing:
        return await self._browser.concepts(await self._queries.open(*place), search=search, after=after, limit=limit)

    async def get(self, place: tuple[TenantId, WorkspaceId], theme_id: UUID) -> ThemeDetail:
        return await self._browser.get(await self._queries.open(*place), theme_id)
