"""How many documents each engine answers from, counted once for each state of a corpus."""

from collections import OrderedDict
from collections.abc import Mapping
from uuid import UUID

from app.db.session import TenantSession
from app.domain.queries.repository import TrustedDocuments
from app.retrieval.contract import Engine

MOST_REMEMBERED = 10_000


class ReadyDocuments:
    """One a process. The corpus version moves with whatever changes the counts, so none has to be forgotten for it."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[UUID, bool], tuple[int, Mapping[Engine, int]]] = OrderedDict()

    async def count(
        self, session: TenantSession, workspace_id: UUID, corpus_version: int, *, include_partial: bool
    ) -> Mapping[Engine, int]:
        """As `TrustedDocuments.count`; `corpus_version` was read in the same transaction or before it."""
        key = workspace_id, include_partial
        version, counts = self._known.get(key, (None, {}))
        if version != corpus_version:
            counts = await TrustedDocuments(session).count(workspace_id, include_partial=include_partial)
            self._known[key] = corpus_version, counts
        self._known.move_to_end(key)
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return counts
