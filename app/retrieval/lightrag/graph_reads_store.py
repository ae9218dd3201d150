"""Statements that read around in a workspace's graph, each bounded."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.graph_store import MANUAL, NAMESPACE
from app.retrieval.lightrag.reads import Reads
from app.retrieval.lightrag.support_store import TRUSTED

# The strongest relations of each entity at the border.
_AROUND = f"""
SELECT DISTINCT src_id, tgt_id, properties FROM (
 SELECT e.src_id, e.tgt_id, e.properties
  FROM unnest($2::text[]) border (id) CROSS JOIN LATERAL (
    SELECT src_id, tgt_id, properties FROM (
      SELECT src_id, tgt_id, properties FROM lightrag_graph_edges
       WHERE workspace = $1 AND namespace = '{NAMESPACE}' AND src_id = border.id
      UNION ALL SELECT src_id, tgt_id, properties FROM lightrag_graph_edges
       WHERE workspace = $1 AND namespace = '{NAMESPACE}' AND tgt_id = border.id
    ) own ORDER BY (properties->>'weight')::float DESC NULLS LAST, src_id, tgt_id LIMIT $3
  ) e LIMIT $4
) found
"""  # noqa: S608 - put together from constants

# Every relation of entities at the border, or some of them.
_PAIRS_AROUND = f"""
SELECT e.src_id, e.tgt_id
  FROM unnest($2::text[]) border (id) CROSS JOIN LATERAL (
    SELECT src_id, tgt_id FROM lightrag_graph_edges
     WHERE workspace = $1 AND namespace = '{NAMESPACE}' AND src_id = border.id
    UNION ALL SELECT src_id, tgt_id FROM lightrag_graph_edges
     WHERE workspace = $1 AND namespace = '{NAMESPACE}' AND tgt_id = border.id
  ) e LIMIT $3
"""  # noqa: S608 - put together from constants

_NODES = f"""
SELECT id AS entity_name, properties->>'entity_type' AS entity_type, coalesce(properties->>'description', '') AS description
  FROM lightrag_graph_nodes WHERE workspace = $1 AND namespace = '{NAMESPACE}' AND id = ANY ($2)
"""  # noqa: S608 - put together from constants

_MENTIONS = f"""
SELECT m.id, live.document_id, m.version_id, m.chunk_ordinal, m.name, m.target, m.description, m.keywords
  FROM mentions m JOIN ({TRUSTED.format(states="$3", tenant="$2")}) live ON live.version_id = m.version_id
 WHERE m.tenant_id = $2 AND m.workspace_id = $1 AND m.id > $5
   AND (md5(m.name) = md5($4::text) OR (m.target IS NOT NULL AND md5(m.target) = md5($4::text)))
 ORDER BY m.id LIMIT $6
"""  # noqa: S608 - put together from constants

_NAMES = f"""
SELECT t.id FROM lightrag_entity_chunks t
 WHERE t.workspace = $1
   AND EXISTS (SELECT 1 FROM jsonb_array_elements_text(t.chunk_ids) c
                 LEFT JOIN ({TRUSTED.format(states="$3", tenant="$2")}) live ON live.version_id::text = substr(c, 1, 36)
                WHERE live.version_id IS NOT NULL OR c = '{MANUAL}')
"""  # noqa: S608 - put together from constants

_NEIGHBOUR_NAMES = f"""
SELECT own.id, array_agg(own.other) AS others FROM (
  SELECT src_id AS id, tgt_id AS other FROM lightrag_graph_edges
   WHERE workspace = $1 AND namespace = '{NAMESPACE}' AND src_id = ANY ($2)
  UNION ALL SELECT tgt_id, src_id FROM lightrag_graph_edges
   WHERE workspace = $1 AND namespace = '{NAMESPACE}' AND tgt_id = ANY ($2)
) own GROUP BY own.id
"""  # noqa: S608 - put together from constants

_NEARNESS = """
SELECT pair.one, pair.other, 1 - (a.content_vector <=> b.content_vector) AS nearness
  FROM unnest($2::text[], $3::text[]) pair (one, other)
  JOIN lightrag_vdb_entity_{suffix} a ON a.workspace = $1 AND a.entity_name = pair.one
  JOIN lightrag_vdb_entity_{suffix} b ON b.workspace = $1 AND b.entity_name = pair.other
"""


class GraphReads:
    """Reads run inside the workspace's fence."""

    def __init__(self, reads: Reads, ref: WorkspaceRef, states: Collection[str]) -> None:
        self._reads = reads
        self._ref = ref
        self._states = list(states)

    async def around(self, names: Iterable[str], *, limit: int, total: int) -> Sequence[Any]:
        """Rows (src_id, tgt_id, properties) of relations of these entities: of each at most `limit`, the strongest, and
        `total` altogether."""
        return await self._reads.fetch(_AROUND, self._ref.engine_name, list(names), limit, total)

    async def pairs_around(self, names: Iterable[str], *, total: int) -> list[tuple[str, str]]:
        """The ends of the relations of these entities; any `total` of them if there are more."""
        rows = await self._reads.fetch(_PAIRS_AROUND, self._ref.engine_name, list(names), total)
        return [(row["src_id"], row["tgt_id"]) for row in rows]

    async def nodes(self, names: Iterable[str]) -> Sequence[Any]:
        return await self._reads.fetch(_NODES, self._ref.engine_name, list(names))

    async def mentions(self, name: str, *, after: int, limit: int) -> Sequence[Any]:
        ref = self._ref
        return await self._reads.fetch(_MENTIONS, ref.workspace_id, ref.tenant_id, self._states, name, after, limit)

    async def names(self) -> list[str]:
        """Of all entities that may be shown."""
        rows = await self._reads.fetch(_NAMES, self._ref.engine_name, self._ref.tenant_id, self._states)
        return [row["id"] for row in rows]

    async def neighbours_of(self, names: Iterable[str]) -> dict[str, set[str]]:
        rows = await self._reads.fetch(_NEIGHBOUR_NAMES, self._ref.engine_name, list(names))
        return {row["id"]: set(row["others"]) for row in rows}

    async def nearness(self, pairs: Sequence[tuple[str, str]], suffix: str) -> dict[tuple[str, str], float]:
        """Cosine similarities of what the graph says of both."""
        columns = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        rows = await self._reads.fetch(_NEARNESS.format(suffix=suffix), self._ref.engine_name, *columns)
        return {(row["one"], row["other"]): float(row["nearness"]) for row in rows}
