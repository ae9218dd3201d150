"""How large a workspace's lazy index is, for people who want to know what a query walks over."""

import time
from dataclasses import dataclass

from sqlalchemy import text

from app.db.session import Database
from app.retrieval.contract import WorkspaceRef

# Counting reads the postings; beyond so many the numbers would cost more than the query.
MOST_COUNTED = 500_000
REMEMBERED_SECONDS = 60.0
MOST_REMEMBERED = 1000

_COUNT = text("""
SELECT (SELECT coalesce(sum(passages), 0)::bigint FROM lazy_versions
         WHERE tenant_id = :tenant_id AND workspace = :workspace) AS passages,
       count(DISTINCT key) AS concepts, count(*) AS memberships
  FROM (SELECT key FROM concept_postings WHERE workspace = :workspace LIMIT :most) few
""")


@dataclass(frozen=True)
class IndexSize:
    """Passages, distinct concepts, and concepts of passages; None where there are more than are counted."""

    passages: int
    concepts: int | None
    memberships: int | None


class IndexSizes:
    """Counts at most once a minute and workspace: while documents arrive the numbers lag behind."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[WorkspaceRef, tuple[float, IndexSize]] = {}

    async def of(self, ref: WorkspaceRef) -> IndexSize:
        counted_at, size = self._known.get(ref, (0.0, None))
        if size is None or time.monotonic() - counted_at > REMEMBERED_SECONDS:
            size = await self._count(ref)
            while len(self._known) >= MOST_REMEMBERED:
                self._known.pop(next(iter(self._known)))
            self._known[ref] = time.monotonic(), size
        return size

    async def _count(self, ref: WorkspaceRef) -> IndexSize:
        values = {"tenant_id": ref.tenant_id, "workspace": ref.number, "most": MOST_COUNTED + 1}
        async with self._database.tenant(ref.tenant_id) as session:
            row = (await session.execute(_COUNT, values)).one()
        is_counted = row.memberships <= MOST_COUNTED
        return IndexSize(row.passages, row.concepts if is_counted else None, row.memberships if is_counted else None)
