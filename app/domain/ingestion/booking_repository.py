"""Books what attempts used: each call once, whoever may have lost the answer to a commit."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause, text

from app.db.statements import as_text
from app.domain.ingestion.states import Claim
from app.domain.usage.repository import ADD_USAGE, usage_columns
from app.providers.usage import UsageMeter

# The index's own counts follow what is new in the ledger.
_BOOK = text(f"""
WITH booked AS ({ADD_USAGE} RETURNING calls, purpose, tokens_in, tokens_out),
     used AS (SELECT coalesce(sum(calls) FILTER (WHERE purpose NOT LIKE 'embed%'), 0) AS calls, sum(tokens_in) AS tokens_in,
                     sum(tokens_out) AS tokens_out FROM booked HAVING count(*) > 0)
UPDATE index_states s
   SET model_calls = s.model_calls + used.calls, tokens_in = s.tokens_in + used.tokens_in,
       tokens_out = s.tokens_out + used.tokens_out
  FROM used
 WHERE s.tenant_id = :tenant_id AND s.version_id = :version_id AND s.engine = :engine
""")  # noqa: S608 - put together from constants

# What was used, each part with an id that stays its own until it is known to be in the ledger.
Bookings = Sequence[tuple[UUID | None, UsageMeter]]


def booking(claim: Claim, document_id: UUID, bookings: Bookings) -> TextClause:
    """The statement that books; what is booked already it leaves alone."""
    return _BOOK.bindparams(**_values(claim, document_id, bookings))


def booked_statement(claim: Claim, document_id: UUID) -> str:
    """The same, as an engine's transaction takes it."""
    return as_text(booking(claim, document_id, ()))[0]


def booked_arguments(claim: Claim, document_id: UUID, bookings: Bookings) -> tuple[Any, ...]:
    return as_text(booking(claim, document_id, bookings))[1]


def _values(claim: Claim, document_id: UUID, bookings: Bookings) -> dict[str, Any]:
    return {
        "tenant_id": claim.tenant_id,
        "workspace_id": claim.workspace_id,
        "document_id": document_id,
        "version_id": claim.version_id,
        "engine": claim.engine,
        "query_id": None,
        **usage_columns(bookings),
    }
