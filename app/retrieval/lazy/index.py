"""Writes the lazy index of a version in the caller's transaction: concepts, terms and their postings."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from app.aside import RunAside
from app.db.session import TenantSession
from app.retrieval.contract import PassageRow, WorkspaceRef
from app.retrieval.lazy.selection import Mention, select_mentions
from app.retrieval.lazy.store import add_passages, add_version, remove_version
from app.retrieval.store.postings import TermCounts, count_terms, write_postings
from app.text.concepts.words import sentences

_BATCH = 500


@dataclass(frozen=True)
class _Analysis:
    """What the index keeps of one passage."""

    mentions: list[Mention]
    terms: TermCounts
    surfaces: str  # a JSON array


class ConceptIndex:
    """A `LazyIndex`: also serves `baseline`, whose term postings it writes. Texts are read by `run`, off the loop."""

    def __init__(self, run: RunAside = asyncio.to_thread) -> None:
        self._run = run

    async def add(
        self,
        session: TenantSession,
        ref: WorkspaceRef,
        title: str,
        passages: Sequence[PassageRow],
        *,
        is_file_name: bool = False,
    ) -> None:
        """Index passages of one version that the same transaction has stored. A title that is only the file's name is found by
        its words, and names no concept."""
        if not passages:
            return
        length = 0
        for start in range(0, len(passages), _BATCH):
            batch = passages[start : start + _BATCH]
            # Leases and other documents of this process go on meanwhile.
            found = dict(
                zip([row.id for row in batch], await self._run(_analyse, title, is_file_name, batch), strict=True)
            )
            await add_passages(
                session,
                ref,
                {passage_id: analysis.mentions for passage_id, analysis in found.items()},
                {passage_id: analysis.terms.keys for passage_id, analysis in found.items()},
                {passage_id: analysis.surfaces for passage_id, analysis in found.items()},
            )
            await write_postings(session, ref, {passage_id: analysis.terms for passage_id, analysis in found.items()})
            length += sum(analysis.terms.length for analysis in found.values())
        await add_version(session, ref, passages[0].id, passages=len(passages), terms=length)

    async def remove(self, session: TenantSession, ref: WorkspaceRef, version_id: UUID) -> None:
        """Remove what `add` wrote for the version; call it before its passages are deleted. A no-op if there is nothing."""
        await remove_version(session, ref, version_id)


def _analyse(title: str, is_file_name: bool, passages: Sequence[PassageRow]) -> list[_Analysis]:
    """Each passage is read once, for its concepts and for its terms."""
    found = []
    for passage in passages:
        read = sentences(passage.text)
        mentions = select_mentions("" if is_file_name else title, passage.heading_path, read)
        terms = count_terms(title, passage.heading_path, chain.from_iterable([sentence.tokens for sentence in read]))
        found.append(_Analysis(mentions, terms, json.dumps([mention.surface for mention in mentions])))
    return found
