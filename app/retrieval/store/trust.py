"""The one definition of which versions an engine may answer from, as SQL to join to whatever has a version.

A version counts if it is the live one of its document for the engine, its index state is `ready` (or `partial`, where
the caller asks for those), nothing of it is being purged, and its document is not being deleted.
"""

from collections.abc import Mapping
from typing import Any

from app.retrieval.contract import Engine


def trusted(alias: str) -> str:
    """Joins that keep the rows of `alias` (with tenant_id, version_id) whose version is trusted.

    They bring in `live`, `state` and `document`; parameters come from `trust_parameters`.
    """
    return f"""
  JOIN live_versions live ON live.tenant_id = {alias}.tenant_id AND live.engine = :engine
                         AND live.version_id = {alias}.version_id
  JOIN index_states state ON state.tenant_id = live.tenant_id AND state.version_id = live.version_id
                         AND state.engine = live.engine AND state.state = ANY (CAST(:states AS text[]))
                         AND state.cleanliness = 'clean'
  JOIN documents document ON document.tenant_id = live.tenant_id AND document.id = live.document_id
                         AND document.deleting_at IS NULL"""


def trust_parameters(engine: Engine, *, include_partial: bool) -> Mapping[str, Any]:
    """The parameters of `trusted`."""
    return {"engine": engine, "states": ["ready", "partial"] if include_partial else ["ready"]}
