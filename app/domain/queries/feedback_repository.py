"""Queries about what people say of answers, and which mode they liked for which kind of question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, func, text
from sqlalchemy.dialects.postgresql import insert

from app.db.models import QueryFeedback, QueryVerdict
from app.db.repository import TenantRepository

# Feedback and verdicts are summed for each query first, or one would count as often as there are of the other.
_REPORT = text("""
SELECT q.kind, q.mode, count(*) AS queries, COALESCE(sum(said.ratings), 0)::bigint AS ratings,
       sum(said.total)::float8 / NULLIF(sum(said.ratings), 0) AS mean_rating,
       COALESCE(sum(judged.verdicts), 0)::bigint AS verdicts,
       sum(judged.relevant)::float8 / NULLIF(sum(judged.verdicts), 0) AS relevant_share,
       avg(q.milliseconds) AS mean_milliseconds, sum(q.cost) AS cost
  FROM queries q
  LEFT JOIN LATERAL (SELECT count(*) AS ratings, sum(f.rating) AS total FROM query_feedback f
                      WHERE f.tenant_id = q.tenant_id AND f.query_id = q.id) said ON true
  LEFT JOIN LATERAL (SELECT count(*) AS verdicts, count(*) FILTER (WHERE v.is_relevant) AS relevant FROM query_verdicts v
                      WHERE v.tenant_id = q.tenant_id AND v.query_id = q.id) judged ON true
 WHERE q.tenant_id = :tenant_id AND q.workspace_id = :workspace_id
   AND q.created_at >= COALESCE(CAST(:since AS timestamptz), '-infinity')
   AND q.created_at < COALESCE(CAST(:until AS timestamptz), 'infinity')
 GROUP BY q.kind, q.mode
 ORDER BY q.kind, mean_rating DESC NULLS LAST, queries DESC, q.mode
""")


@dataclass(frozen=True)
class ModeStanding:
    """A mode's queries of one kind. Means are None where there is nothing to take them of."""

    kind: str
    mode: str
    queries: int
    ratings: int
    mean_rating: float | None
    verdicts: int
    relevant_share: float | None
    mean_milliseconds: float
    cost: float | None


class FeedbackRepository(TenantRepository):
    async def put(self, query_id: UUID, caller: str, *, rating: int, comment: str | None) -> None:
        """Replace what the caller said of the query."""
        values = {"rating": rating, "comment": comment}
        statement = insert(QueryFeedback).values(
            tenant_id=self.session.tenant_id, query_id=query_id, caller=caller, **values
        )
        await self.session.execute(
            statement.on_conflict_do_update(
                index_elements=["tenant_id", "query_id", "caller"], set_={**values, "updated_at": func.now()}
            )
        )

    async def put_verdicts(self, query_id: UUID, caller: str, verdicts: Mapping[int, bool]) -> None:
        """Replace what the caller said of passages; they are in the query's evidence."""
        await self.session.execute(
            delete(QueryVerdict).where(
                QueryVerdict.tenant_id == self.session.tenant_id,
                QueryVerdict.query_id == query_id,
                QueryVerdict.caller == caller,
            )
        )
        if verdicts:
            common = {"tenant_id": self.session.tenant_id, "query_id": query_id, "caller": caller}
            rows = [{**common, "passage_id": passage, "is_relevant": said} for passage, said in verdicts.items()]
            await self.session.execute(insert(QueryVerdict).values(rows))

    async def list(self, query_id: UUID) -> "Sequence[QueryFeedback]":
        query = self.rows(QueryFeedback, QueryFeedback.query_id == query_id)
        return (await self.session.scalars(query.order_by(QueryFeedback.created_at, QueryFeedback.caller))).all()

    async def verdicts(self, query_id: UUID) -> "Sequence[QueryVerdict]":
        query = self.rows(QueryVerdict, QueryVerdict.query_id == query_id)
        return (await self.session.scalars(query.order_by(QueryVerdict.passage_id))).all()

    async def report(
        self, workspace_id: UUID, *, since: datetime | None, until: datetime | None
    ) -> "Sequence[ModeStanding]":
        """By kind, the best liked mode first."""
        values = {"tenant_id": self.session.tenant_id, "workspace_id": workspace_id, "since": since, "until": until}
        return [ModeStanding(**row) for row in (await self.session.execute(_REPORT, values)).mappings()]
