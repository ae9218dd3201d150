"""The one definition of which versions an engine may answer from, as SQL to join to whatever has a version.

A version counts if it is the live one of its document for the engine, its index state is `ready` (or `partial`, where
the caller asks for those), nothing of it is being purged, and its document is not being deleted.
"""

from collections.abc import Mapping
from typing import Any

from app.retrieval.contract import Engine


def trusted(alias: str) -> str:
    """A join that keeps the rows of `alias` (with tenant_id, version_id) whose version is trusted.

    It brings in `source` with title, filename and state; parameters come from `trust_parameters`. Looked up row by row
    (OFFSET is a fence): a plan that is kept for any tenant is made for one of average size, and would begin with all
    documents of a large one.
    """
    return f"""
 CROSS JOIN LATERAL (
   SELECT document.title, document.filename, state.state
     FROM live_versions live
     JOIN index_states state ON state.tenant_id = live.tenant_id AND state.version_id = live.version_id
                            AND state.engine = live.engine AND state.state = ANY (CAST(:states AS text[]))
                            AND state.cleanliness = 'clean'
     JOIN documents document ON document.tenant_id = live.tenant_id AND document.id = live.document_id
                            AND document.deleting_at IS NULL
    WHERE live.tenant_id = {alias}.tenant_id AND live.engine = :engine AND live.version_id = {alias}.version_id
   OFFSET 0
 ) source"""  # noqa: S608 - put together from constants of ours


def trusted_passage(passage_id: str) -> str:
    """As `trusted`, for rows that name a passage by the expression `passage_id` only."""
    return f"""
 CROSS JOIN LATERAL (
   SELECT p.tenant_id, p.version_id FROM passages p WHERE p.tenant_id = :tenant_id AND p.id = {passage_id} OFFSET 0
 ) passage {trusted("passage")}"""  # noqa: S608 - put together from constants of ours


def trust_parameters(engine: Engine, *, include_partial: bool) -> Mapping[str, Any]:
    """The parameters of `trusted`."""
    return {"engine": engine, "states": ["ready", "partial"] if include_partial else ["ready"]}
