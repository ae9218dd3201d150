"""What people say of an answer: one word of each caller, which a later one replaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from app.db.session import TenantSession
from app.domain.queries.errors import NotInEvidence
from app.domain.queries.feedback_repository import FeedbackRepository
from app.domain.queries.log_repository import QueryLogRepository


@dataclass(frozen=True)
class Feedback:
    """`rating` from 1 to 5, the best; `verdicts` say of passages whether they are relevant."""

    rating: int
    comment: str | None = None
    verdicts: Mapping[int, bool] = field(default_factory=dict)


async def give_feedback(
    session: TenantSession, workspace_id: UUID, query_id: UUID, caller: str, feedback: Feedback
) -> None:
    """Put the caller's word in place of an earlier one; the same word twice changes nothing.

    Raises QueryNotFound or NotInEvidence.
    """
    log = QueryLogRepository(session)
    await log.get(workspace_id, query_id)
    known = {row.passage_id for row in await log.evidence(query_id)}
    if unknown := sorted(set(feedback.verdicts) - known):
        raise NotInEvidence("These passages are not part of the answer.", passage_ids=unknown)
    repository = FeedbackRepository(session)
    await repository.put(query_id, caller, rating=feedback.rating, comment=feedback.comment)
    await repository.put_verdicts(query_id, caller, feedback.verdicts)
