"""The one definition of which versions an engine may answer from, as SQL to join to whatever has a version.

A version counts if it is the live one of its document for the engine, its index state is `ready` (or `partial`, where
the caller asks for those), nothing of it is being purged, and its document is not being deleted.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text

from app.db.session import TenantSession
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


# Why a version is not trusted, in this order: its document is being deleted, what is left of it is being removed, another
# version of its document answers now, it is indexed in part only, its index is not ready.
REASONS: Final = ("deleting", "purging", "replaced", "partial", "not_ready")


def judged(alias: str) -> str:
    """A join like that of `trusted` that keeps all rows: `source.reason` is NULL for a trusted version, else why it is
    not, one of `REASONS`."""
    return f"""
 CROSS JOIN LATERAL (
   SELECT CASE WHEN document.deleting_at IS NOT NULL THEN 'deleting'
               WHEN state.cleanliness = 'purging' THEN 'purging'
               WHEN live.version_id IS NULL AND state.state IN ('ready', 'partial') THEN 'replaced'
               WHEN live.version_id IS NOT NULL AND state.state = ANY (CAST(:states AS text[])) THEN NULL
               WHEN state.state = 'partial' THEN 'partial'
               ELSE 'not_ready' END AS reason
     FROM versions version
     JOIN documents document ON document.tenant_id = version.tenant_id AND document.id = version.document_id
     LEFT JOIN index_states state ON state.tenant_id = version.tenant_id AND state.version_id = version.id
                                 AND state.engine = :engine
     LEFT JOIN live_versions live ON live.tenant_id = version.tenant_id AND live.engine = :engine
                                 AND live.version_id = version.id
    WHERE version.tenant_id = {alias}.tenant_id AND version.id = {alias}.version_id
   OFFSET 0
 ) source"""  # noqa: S608 - put together from constants of ours


def trusted_passage(passage_id: str) -> str:
    """As `trusted`, for rows that name a passage by the expression `passage_id` only."""
    return f"""
 CROSS JOIN LATERAL (
   SELECT p.tenant_id, p.version_id FROM passages p WHERE p.tenant_id = :tenant_id AND p.id = {passage_id} OFFSET 0
 ) passage {trusted("passage")}"""  # noqa: S608 - put together from constants of ours


def judged_passage(passage_id: str) -> str:
    """As `judged`, for rows that name a passage by the expression `passage_id` only."""
    return f"""
 CROSS JOIN LATERAL (
   SELECT p.tenant_id, p.version_id FROM passages p WHERE p.tenant_id = :tenant_id AND p.id = {passage_id} OFFSET 0
 ) passage {judged("passage")}"""  # noqa: S608 - put together from constants of ours


def trust_parameters(engine: Engine, *, include_partial: bool) -> Mapping[str, Any]:
    """The parameters of `trusted`."""
    return {"engine": engine, "states": ["ready", "partial"] if include_partial else ["ready"]}


_REASONS_OF = text(f"""
SELECT asked.version_id, source.reason
  FROM (SELECT CAST(:tenant_id AS uuid) AS tenant_id, unnest(CAST(:versions AS uuid[])) AS version_id) asked
       {judged("asked")}
 WHERE source.reason IS NOT NULL
""")  # noqa: S608 - put together from constants of ours


async def reasons_of(
    session: TenantSession, versions: Iterable[UUID], *, engine: Engine, include_partial: bool
) -> dict[UUID, str]:
    """Why each of these versions is not trusted, one of `REASONS`; those that are, or are gone, are left out."""
    parameters = {"tenant_id": session.tenant_id, "versions": sorted(set(versions))}
    parameters |= trust_parameters(engine, include_partial=include_partial)
    return {row.version_id: row.reason for row in await session.execute(_REASONS_OF, parameters)}


UNTRUSTED_PASSAGES: Final = """
SELECT p.id
  FROM lazy_versions l
  JOIN passages p ON p.tenant_id = l.tenant_id AND p.version_id = l.version_id
 WHERE l.tenant_id = :tenant_id AND l.workspace = :workspace AND NOT EXISTS (
   SELECT 1 FROM live_versions live
     JOIN index_states state ON state.tenant_id = live.tenant_id AND state.version_id = live.version_id
                            AND state.engine = live.engine AND state.state = ANY (CAST(:states AS text[]))
                            AND state.cleanliness = 'clean'
     JOIN documents document ON document.tenant_id = live.tenant_id AND document.id = live.document_id
                            AND document.deleting_at IS NULL
    WHERE live.tenant_id = l.tenant_id AND live.engine = :engine AND live.version_id = l.version_id)
"""  # as a set, for few or none of them are met by a search
