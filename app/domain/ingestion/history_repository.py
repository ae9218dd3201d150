"""Reads what became of a document's indexes. The rows are written by the database, with each change of a state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select

from app.db.models import IndexTransition, Version
from app.db.repository import TenantRepository

# Reasons that the trigger gives itself (migration 0010); all others are codes of errors.
REASONS: Mapping[str, str] = {
    "added": "the version was added and waits for a worker",
    "claimed": "a worker took it",
    "lease_expired": "the worker before gave no sign of life for the length of its lease; another one took over",
    "handed_back": "the worker was told to stop, or other work waited; the rest is queued",
    "waiting_for_workspace": "another document of the workspace was being written; the work waits without a worker",
    "merge_begun": "the graph is about to be written; what a broken-off write leaves will be removed",
    "purged": "the graph was seen to hold nothing of the version",
    "retried": "a retry was asked for",
    "cancelled": "the work was called off",
    "finished": "the index is whole",
}


@dataclass(frozen=True)
class Transition:
    """A row of the history with the version it is about."""

    row: IndexTransition
    version_ordinal: int

    @property
    def sentence(self) -> str:
        """For people: what the error said, or what the reason means."""
        return self.row.detail or REASONS.get(self.row.reason, "")


class HistoryRepository(TenantRepository):
    async def of_document(self, document_id: UUID) -> Sequence[Transition]:
        """All transitions that are kept of the document's versions, in the order in which they happened."""
        query = (
            select(IndexTransition, Version.ordinal)
            .join(
                Version, (Version.tenant_id == IndexTransition.tenant_id) & (Version.id == IndexTransition.version_id)
            )
            .where(Version.tenant_id == self.session.tenant_id, Version.document_id == document_id)
            .order_by(IndexTransition.at, Version.ordinal, IndexTransition.engine.desc(), IndexTransition.ordinal)
        )
        return [Transition(row, ordinal) for row, ordinal in await self.session.execute(query)]
