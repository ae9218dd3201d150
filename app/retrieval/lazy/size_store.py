"""How large a workspace's lazy index is, for people who want to know what a query walks over."""

import asyncio
import time
from dataclasses import dataclass

import structlog
from sqlalchemy import text

from app.db.session import CONNECTION_ERRORS, Database
from app.retrieval.contract import WorkspaceRef

# Counting reads the postings; beyond so many the numbers would cost more than the query.
MOST_COUNTED = 500_000
REMEMBERED_SECONDS = 60.0
MOST_REMEMBERED = 1000
# An answer that is written waits no longer than this for the numbers beside it.
MAX_SECONDS = 2.0

logger = structlog.stdlib.get_logger(__name__)

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
    """Counts at most once a minute and workspace, one count at a time: while documents arrive the numbers lag behind."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[WorkspaceRef, tuple[float, IndexSize]] = {}
        self._counting: dict[WorkspaceRef, asyncio.Task[None]] = {}

    async def of(self, ref: WorkspaceRef) -> IndexSize | None:
        """The last known size where it cannot be counted now, or not soon enough; None where none is known."""
        counted_at, size = self._known.get(ref, (0.0, None))
        if size is not None and time.monotonic() - counted_at <= REMEMBERED_SECONDS:
            return size
        task = self._counting.get(ref)
        if task is None:
            task = self._counting[ref] = asyncio.create_task(self._count(ref))
        # Who waits no longer, or has gone, leaves the count to the next one.
        await asyncio.wait({task}, timeout=MAX_SECONDS)
        return self._known[ref][1] if ref in self._known else None

    async def _count(self, ref: WorkspaceRef) -> None:
        values = {"tenant_id": ref.tenant_id, "workspace": ref.number, "most": MOST_COUNTED + 1}
        try:
            async with self._database.tenant(ref.tenant_id) as session:
                row = (await session.execute(_COUNT, values)).one()
        except CONNECTION_ERRORS as error:
            logger.warning("index_not_counted", workspace_id=str(ref.workspace_id), error_type=type(error).__name__)
            return
        finally:
            del self._counting[ref]
        is_counted = row.memberships <= MOST_COUNTED
        size = IndexSize(row.passages, row.concepts if is_counted else None, row.memberships if is_counted else None)
        while len(self._known) >= MOST_REMEMBERED:
            self._known.pop(next(iter(self._known)))
        self._known[ref] = time.monotonic(), size
