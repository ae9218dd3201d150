"""Vectors of passages, in one table per embedding profile: written once per content, searched within one workspace.

The tables themselves are created by `app/db/vector_tables.py`. Small workspaces share a partition without an ANN index
and are compared row by row, so that none loses results to a big one beside it (facts F13). A large one has an index of
its own; what it leaves out, because many of the nearest passages cannot be trusted, is found by comparing as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import TextClause, text

from app.db.session import TenantSession
from app.db.vector_bytes import send_vectors_as_bytes, vector_bytes
from app.db.vector_partitions import OWN_INDEX_ROWS
from app.db.vector_tables import vector_table_names
from app.providers.contract import Vectors
from app.retrieval.contract import WorkspaceRef
from app.retrieval.store.allowed import ALLOWED_IDS, Allowed, allowed_parameters
from app.retrieval.store.hits import Hit, Ranking, ranking
from app.retrieval.store.trust import judged, trust_parameters

# A workspace that has a partition of its own and shrank is compared all the same.
EXACT_ROWS = OWN_INDEX_ROWS
_BATCH = 500

_KNOWN = """
SELECT DISTINCT ON (content_hash) content_hash, CAST(embedding AS real[]) AS embedding
  FROM {table}
 WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id AND content_hash = ANY (CAST(:hashes AS bytea[]))
 ORDER BY content_hash, passage_id
"""

_WRITE = """
INSERT INTO {table} (tenant_id, workspace_id, passage_id, version_id, content_hash, embedding)
SELECT :tenant_id, :workspace_id, passage_id, :version_id, content_hash, embedding
  FROM unnest(CAST(:ids AS bigint[]), CAST(:hashes AS bytea[]), CAST(:embeddings AS vector[]))
       AS given (passage_id, content_hash, embedding)
"""

# As a subquery, for a plan kept for any parameter would read the vector's text again for every row.
_QUERY = "(SELECT CAST(CAST(:query AS text) AS vector))"

_BY_INDEX = f"""
WITH near AS MATERIALIZED (
  SELECT passage_id, version_id, tenant_id, embedding <=> {_QUERY} AS distance
    FROM {{table}}
   WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id
   ORDER BY embedding <=> {_QUERY} LIMIT :wanted
)
"""  # noqa: S608 - put together from constants of ours

# OFFSET keeps the planner from turning to an index.
_BY_COMPARING = f"""
WITH near AS MATERIALIZED (
  SELECT * FROM (
    SELECT passage_id, version_id, tenant_id, embedding <=> {_QUERY} AS distance
      FROM {{table}} WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id OFFSET 0
  ) mine ORDER BY distance, passage_id LIMIT :wanted
)
"""  # noqa: S608 - put together from constants of ours

_ALLOWED_BY_COMPARING = f"""
WITH near AS MATERIALIZED (
  SELECT * FROM (
    SELECT v.passage_id, v.version_id, v.tenant_id, v.embedding <=> {_QUERY} AS distance
      FROM unnest({ALLOWED_IDS}) allowed (id)
      JOIN {{table}} v ON v.tenant_id = :tenant_id AND v.workspace_id = :workspace_id AND v.passage_id = allowed.id
    OFFSET 0
  ) mine ORDER BY distance, passage_id LIMIT :wanted
)
"""  # noqa: S608 - put together from constants of ours

_JUDGED = f"""
SELECT found.seen, hit.passage_id, 1 - hit.distance AS cosine, hit.reason
  FROM (SELECT count(*) AS seen FROM near) found
  LEFT JOIN (
    SELECT near.passage_id, near.distance, source.reason
      FROM near {judged("near")}
  ) hit ON true
 ORDER BY hit.distance, hit.passage_id
"""  # noqa: S608 - put together from constants of ours

_SIMILARITIES = f"""
SELECT passage_id, 1 - (embedding <=> {_QUERY}) AS cosine
  FROM {{table}}
 WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id AND passage_id = ANY (CAST(:ids AS bigint[]))
 ORDER BY cosine DESC, passage_id
"""  # noqa: S608 - put together from constants of ours

_PLAN_EACH_TIME = text("SET LOCAL plan_cache_mode = force_custom_plan")
_PLAN_AS_USUAL = text("SET LOCAL plan_cache_mode = auto")


class PassageVectors:
    """The vectors of one embedding profile, named by its table suffix."""

    def __init__(self, suffix: str) -> None:
        *_, self._table = vector_table_names(suffix)

    async def find(self, session: TenantSession, ref: WorkspaceRef, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The vectors that the workspace already has for these content hashes."""
        known: dict[bytes, Vectors] = {}
        wanted = list(set(hashes))
        # In batches: the driver makes lists of Python floats, eight times as large as what is kept of them.
        for start in range(0, len(wanted), _BATCH):
            parameters = {"hashes": wanted[start : start + _BATCH], **_scope(ref)}
            for row in await session.execute(_statement(_KNOWN, self._table), parameters):
                known[row.content_hash] = np.asarray(row.embedding, dtype=np.float32)
        return known

    async def write(
        self, session: TenantSession, ref: WorkspaceRef, version_id: UUID, vectors: Mapping[int, tuple[bytes, Vectors]]
    ) -> None:
        """Store vectors by passage id, each with the content hash of what was embedded."""
        rows = sorted(vectors.items())
        await send_vectors_as_bytes(session)
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            parameters = {
                "version_id": version_id,
                "ids": [passage_id for passage_id, _ in batch],
                "hashes": [digest for _, (digest, _) in batch],
                "embeddings": [vector_bytes(vector) for _, (_, vector) in batch],
                **_scope(ref),
            }
            await session.execute(_statement(_WRITE, self._table), parameters)

    async def nearest(
        self,
        session: TenantSession,
        ref: WorkspaceRef,
        query: Vectors,
        limit: int,
        *,
        rows: int,
        include_partial: bool = False,
        allowed: Allowed | None = None,
    ) -> Ranking:
        """The passages of trusted versions nearest to `query` by cosine, best first; none for a query of zeros.

        `rows` is about how many the workspace has, which decides how they are searched. Those that are `allowed` are
        compared one by one, however many others are nearer.
        """
        if not query.any():
            return Ranking()
        search = _Nearest(self._table, session, ref, _as_text(query), limit, include_partial, allowed)
        if allowed is not None:
            return (await search.run(_ALLOWED_BY_COMPARING))[0]
        if rows > EXACT_ROWS:
            # A generic plan knows neither the limit nor the workspace, and sorts all of it instead of using the index.
            await session.execute(_PLAN_EACH_TIME)
            found, is_complete = await search.run(_BY_INDEX)
            # What follows in the transaction would take longer to plan than to run.
            await session.execute(_PLAN_AS_USUAL)
            if is_complete:
                return found
        return (await search.run(_BY_COMPARING))[0]

    async def similarities(
        self, session: TenantSession, ref: WorkspaceRef, query: Vectors, ids: Sequence[int]
    ) -> list[Hit]:
        """These passages by cosine to `query`, best first; those without a vector are left out."""
        parameters = {"query": _as_text(query), "ids": list(ids), **_scope(ref)}
        found = await session.execute(_statement(_SIMILARITIES, self._table), parameters)
        return [Hit(row.passage_id, row.cosine) for row in found]


@dataclass(frozen=True)
class _Nearest:
    """One search, by whichever method."""

    table: str
    session: TenantSession
    ref: WorkspaceRef
    query: str
    limit: int
    include_partial: bool
    allowed: Allowed | None

    async def run(self, method: str) -> tuple[Ranking, bool]:
        """Hits, and whether there cannot be more: untrusted versions are left out after the search, so it widens."""
        wanted = self.limit + self.limit // 4
        statement = _statement(method + _JUDGED, self.table)
        while True:
            parameters = {
                "query": self.query,
                "wanted": wanted,
                **_scope(self.ref),
                **allowed_parameters(self.allowed),
                **trust_parameters("lazy", include_partial=self.include_partial),
            }
            rows = (await self.session.execute(statement, parameters)).all()
            seen = [(row.passage_id, row.cosine, row.reason) for row in rows if row.passage_id is not None]
            found = ranking(seen, self.limit)
            if len(found.hits) == self.limit:
                return found, True
            if rows[0].seen < wanted:
                return found, method is not _BY_INDEX
            wanted *= 4


@lru_cache(maxsize=256)
def _statement(template: str, table: str) -> TextClause:
    """Parsed once: that takes longer than many a statement of these itself."""
    return text(template.format(table=table))


def _as_text(vector: Vectors) -> str:
    """Nine digits tell any two 32-bit floats apart (IEEE 754), so nothing is lost."""
    numbers = vector.tolist()
    return "[" + ("%.9g," * len(numbers) % tuple(numbers))[:-1] + "]"


def _scope(ref: WorkspaceRef) -> dict[str, Any]:
    return {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id}
