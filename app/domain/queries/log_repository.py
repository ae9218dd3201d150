"""Queries about the query log."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text, tuple_

from app.db.models import LoggedQuery, QueryEvidence
from app.db.repository import TenantRepository
from app.db.session import SystemSession
from app.domain.queries.errors import QueryNotFound

FORGET = text("SELECT forget_queries(:older_than, :max_rows)")

# Evidence of documents that are being deleted is not written any more. One that goes at this moment fails the statement.
_ADD = text("""
WITH logged AS (
  INSERT INTO queries (tenant_id, id, workspace_id, comparison_id, mode_asked, mode, kind, text, milliseconds, cost,
                       model_calls, embedding_calls, tokens_in, tokens_out, passages, entities, relations, withheld)
  VALUES (:tenant_id, :query_id, :workspace_id, :comparison_id, :mode_asked, :mode, :kind, :text, :milliseconds, :cost,
          :model_calls, :embedding_calls, :tokens_in, :tokens_out, :passages, :entities, :relations, :withheld)
)
INSERT INTO query_evidence (tenant_id, query_id, passage_id, document_id, rank)
SELECT :tenant_id, :query_id, found.passage_id, found.document_id, found.rank
  FROM unnest(CAST(:passage_ids AS bigint[]), CAST(:document_ids AS uuid[]))
       WITH ORDINALITY AS found (passage_id, document_id, rank)
  JOIN documents d ON d.tenant_id = :tenant_id AND d.id = found.document_id AND d.deleting_at IS NULL
""")


@dataclass(frozen=True)
class LogEntry:
    """An answered question. `passage_ids` and `document_ids` go together, the best passage first."""

    query_id: UUID
    comparison_id: UUID | None
    mode_asked: str
    mode: str
    kind: str
    text: str | None
    milliseconds: float
    cost: float | None
    model_calls: int
    embedding_calls: int
    tokens_in: int
    tokens_out: int
    passages: int
    entities: int
    relations: int
    withheld: int
    passage_ids: tuple[int, ...]
    document_ids: tuple[UUID, ...]

    def without_text(self) -> "LogEntry":
        return replace(self, text=None)


class QueryLogRepository(TenantRepository):
    async def add(self, workspace_id: UUID, entry: LogEntry) -> None:
        values = asdict(entry)
        lists = {name: list(values[name]) for name in ("passage_ids", "document_ids")}
        given = {"tenant_id": self.session.tenant_id, "workspace_id": workspace_id, **values, **lists}
        await self.session.execute(_ADD, given)

    async def list(
        self, workspace_id: UUID, *, before: tuple[datetime, UUID] | None, limit: int
    ) -> "Sequence[LoggedQuery]":
        """The newest first, from the first that is older than `before`."""
        query = self.rows(LoggedQuery, LoggedQuery.workspace_id == workspace_id)
        if before is not None:
            query = query.where(tuple_(LoggedQuery.created_at, LoggedQuery.id) < tuple_(*before))
        query = query.order_by(LoggedQuery.created_at.desc(), LoggedQuery.id.desc()).limit(limit)
        return (await self.session.scalars(query)).all()

    async def get(self, workspace_id: UUID, query_id: UUID) -> LoggedQuery:
        """Raises QueryNotFound."""
        query = self.rows(LoggedQuery, LoggedQuery.workspace_id == workspace_id, LoggedQuery.id == query_id)
        found = await self.session.scalar(query)
        if found is None:
            raise QueryNotFound.of(query_id)
        return found

    async def evidence(self, query_id: UUID) -> "Sequence[QueryEvidence]":
        """What is left of it, best first."""
        query = self.rows(QueryEvidence, QueryEvidence.query_id == query_id).order_by(QueryEvidence.rank)
        return (await self.session.scalars(query)).all()


async def forget_queries(session: SystemSession, older_than: timedelta, max_rows: int) -> int:
    """Remove logged queries of all tenants that have been kept for their time, with all that hangs on them; how many."""
    return int(await session.scalar(FORGET, {"older_than": older_than, "max_rows": max_rows}) or 0)
