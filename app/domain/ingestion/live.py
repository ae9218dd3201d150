"""Our own statements that go in with a graph: its version's state, the live pointer, what it cost and the
corpus version.

The graph engine runs them in the transaction in which it writes, so that a graph is never there without being trusted,
nor trusted without being there.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from sqlalchemy import ClauseElement

from app.db.statements import as_text
from app.domain.ingestion.booking_repository import Bookings, booked_arguments, booked_statement
from app.domain.ingestion.records import Extraction, VersionFacts
from app.domain.ingestion.repository import bumping_corpus, moving_live
from app.domain.ingestion.states import Claim, claim_lost, finishing
from app.errors import AppError
from app.retrieval.contract import Statement


def going_live(
    claim: Claim,
    facts: VersionFacts,
    extraction: Extraction,
    stage_ms: Mapping[str, float],
    used: Callable[[], Bookings],
) -> list[Statement]:
    """running → ready, or partial where chunks are missing. The write is refused with ClaimLost if the claim is lost.

    What was `used` is asked for when all models have been called.
    """
    is_partial = bool(extraction.failed)
    finish = finishing(
        claim,
        "partial" if is_partial else "ready",
        error=("partial_extraction", failure_sentence(extraction)) if is_partial else None,
        stage_ms=stage_ms,
        since_changed="merge",
    )
    return [
        _companion(finish, otherwise=claim_lost()),
        _companion(moving_live(facts, "graph", is_partial=is_partial)),
        Statement(
            booked_statement(claim, facts.document_id), lambda: booked_arguments(claim, facts.document_id, used())
        ),
        _companion(bumping_corpus(facts.ref.tenant_id, facts.ref.workspace_id)),
    ]


def failure_sentence(extraction: Extraction) -> str:
    """Counts and reasons, most frequent first: "3 of 12 chunks could not be extracted: 2 model_nonsense (…), …"."""
    in_vain = (*extraction.failed, *extraction.refused)
    examples = {outcome.error_code: outcome.error_detail for outcome in reversed(in_vain)}
    listed = ", ".join(
        f"{count} {code} ({examples[code]})" if examples[code] else f"{count} {code}"
        for code, count in Counter(outcome.error_code for outcome in in_vain).most_common()
    )
    missing = extraction.total - extraction.extracted
    return f"{missing} of {extraction.total} chunks could not be extracted: {listed or 'none of them was asked for'}"


def _companion(statement: ClauseElement, otherwise: AppError | None = None) -> Statement:
    sql, arguments = as_text(statement)
    return Statement(sql, arguments, otherwise)
