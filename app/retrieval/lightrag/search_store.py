"""What a search reads of the graph: a handful of set-based statements, each bounded, on the engine's own tables.

They find and order what LightRAG's own calls would (facts, section 5), but fetch nothing that is thrown away again: of
the edges of a hub only those that can still be used are read, ranked by the database.
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from pgvector import Vector

from app.providers.contract import Vectors
from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.graph_store import NAMESPACE
from app.retrieval.lightrag.reads import Reads

Row = dict[str, Any]

_ENTITY = """
       n.id AS entity_name, COALESCE(n.properties->>'entity_type', 'UNKNOWN') AS entity_type,
       COALESCE(n.properties->>'description', '') AS description, COALESCE(n.properties->>'source_id', '') AS source_id
"""
_RELATION = """
       COALESCE((e.properties->>'weight')::float8, 1) AS weight, COALESCE(e.properties->>'description', '') AS description,
       COALESCE(e.properties->>'keywords', '') AS keywords, COALESCE(e.properties->>'source_id', '') AS source_id
"""

# What the versions that a filter allows speak of: names of entities, and ends of relations in the graph's order.
SPOKEN_NAMES = """
SELECT m.name FROM mentions m WHERE m.tenant_id = {tenant} AND m.version_id = ANY ({versions})
 UNION SELECT m.target FROM mentions m
        WHERE m.tenant_id = {tenant} AND m.version_id = ANY ({versions}) AND m.target IS NOT NULL"""
SPOKEN_PAIRS = """
SELECT DISTINCT LEAST(m.name COLLATE "C", m.target COLLATE "C") AS one,
       GREATEST(m.name COLLATE "C", m.target COLLATE "C") AS other
  FROM mentions m WHERE m.tenant_id = {tenant} AND m.version_id = ANY ({versions}) AND m.target IS NOT NULL"""

# Without a filter by the index, where there is one; with it all that is spoken of is compared.
NEAREST_NAMES = """
SELECT entity_name, content_vector <=> $2 AS distance FROM lightrag_vdb_entity_{suffix}
 WHERE workspace = $1 ORDER BY content_vector <=> $2, entity_name LIMIT $3"""
NEAREST_SPOKEN_NAMES = f"""
SELECT * FROM (
  SELECT v.entity_name, v.content_vector <=> $2 AS distance
    FROM ({SPOKEN_NAMES.format(tenant="$4", versions="$5")}) spoken
    JOIN lightrag_vdb_entity_{{suffix}} v ON v.workspace = $1 AND v.entity_name = spoken.name OFFSET 0
) compared ORDER BY distance, entity_name LIMIT $3"""  # noqa: S608 - put together from constants
NEAREST_PAIRS = """
SELECT source_id, target_id, content_vector <=> $2 AS distance FROM lightrag_vdb_relation_{suffix}
 WHERE workspace = $1 ORDER BY content_vector <=> $2, source_id, target_id LIMIT $3"""
# Found by LightRAG's ids, which are indexed; two pairs may share one ("ab", "c" and "a", "bc").
NEAREST_SPOKEN_PAIRS = f"""
SELECT * FROM (
  SELECT v.source_id, v.target_id, v.content_vector <=> $2 AS distance
    FROM ({SPOKEN_PAIRS.format(tenant="$4", versions="$5")}) spoken
    JOIN lightrag_vdb_relation_{{suffix}} v ON v.workspace = $1
     AND v.id IN ('rel-' || md5(spoken.one || spoken.other), 'rel-' || md5(spoken.other || spoken.one))
     AND LEAST(v.source_id COLLATE "C", v.target_id COLLATE "C") = spoken.one
     AND GREATEST(v.source_id COLLATE "C", v.target_id COLLATE "C") = spoken.other OFFSET 0
) compared ORDER BY distance, source_id, target_id LIMIT $3"""  # noqa: S608 - put together from constants

_OF_NEAREST_NAMES = f"""
SELECT {_ENTITY}, 1 - near.distance AS score
  FROM ({{nearest}}) near
  JOIN lightrag_graph_nodes n ON n.workspace = $1 AND n.namespace = '{NAMESPACE}' AND n.id = near.entity_name
 ORDER BY near.distance, near.entity_name
"""  # noqa: S608 - put together from constants

_ENTITIES = f"""
SELECT {_ENTITY} FROM lightrag_graph_nodes n WHERE n.workspace = $1 AND n.namespace = '{NAMESPACE}' AND n.id = ANY ($2)
"""  # noqa: S608 - put together from constants

# The ends as the vector's row has them: entities are found in their order.
_OF_NEAREST_PAIRS = f"""
SELECT near.source_id AS src_id, near.target_id AS tgt_id, {_RELATION}, 1 - near.distance AS score
  FROM ({{nearest}}) near
  JOIN lightrag_graph_edges e ON e.workspace = $1 AND e.namespace = '{NAMESPACE}'
   AND e.src_id = LEAST(near.source_id COLLATE "C", near.target_id COLLATE "C")
   AND e.tgt_id = GREATEST(near.source_id COLLATE "C", near.target_id COLLATE "C")
 ORDER BY near.distance, near.source_id, near.target_id
"""  # noqa: S608 - put together from constants

_NEAREST_CHUNKS = """
SELECT id FROM lightrag_vdb_chunks_{suffix} WHERE workspace = $1 ORDER BY content_vector <=> $2, id LIMIT $3
"""
_NEAREST_ALLOWED_CHUNKS = """
SELECT id FROM (
  SELECT id, content_vector <=> $2 AS distance FROM lightrag_vdb_chunks_{suffix}
   WHERE workspace = $1 AND full_doc_id = ANY (CAST($4 AS text[])) OFFSET 0
) compared ORDER BY distance, id LIMIT $3
"""

# By the sum of the ends' degrees, then by weight; equals by the first of the given names that they belong to, then by
# the name at the other end. Descriptions are read of the best ones only.
_RELATIONS_OF = f"""
WITH touching AS MATERIALIZED (
  SELECT e.src_id, e.tgt_id, COALESCE((e.properties->>'weight')::float8, 1) AS weight
    FROM lightrag_graph_edges e WHERE e.workspace = $1 AND e.namespace = '{NAMESPACE}' AND e.src_id = ANY ($2)
         {{spoken}}
  UNION ALL
  SELECT e.src_id, e.tgt_id, COALESCE((e.properties->>'weight')::float8, 1)
    FROM lightrag_graph_edges e
   WHERE e.workspace = $1 AND e.namespace = '{NAMESPACE}' AND e.tgt_id = ANY ($2) AND e.src_id <> ALL ($2)
         {{spoken}}
), degree AS MATERIALIZED (
  SELECT ends.id,
         (SELECT count(*) FROM lightrag_graph_edges x
           WHERE x.workspace = $1 AND x.namespace = '{NAMESPACE}' AND x.src_id = ends.id)
         + (SELECT count(*) FROM lightrag_graph_edges x
             WHERE x.workspace = $1 AND x.namespace = '{NAMESPACE}' AND x.tgt_id = ends.id) AS edges
    FROM (SELECT src_id AS id FROM touching UNION SELECT tgt_id FROM touching) ends
), given AS MATERIALIZED (
  SELECT * FROM unnest($2) WITH ORDINALITY AS g (id, place)
), best AS MATERIALIZED (
  SELECT t.src_id, t.tgt_id, row_number() OVER (
           ORDER BY s.edges + d.edges DESC, t.weight DESC, LEAST(gs.place, gt.place),
                    CASE WHEN gt.place IS NULL OR gs.place < gt.place THEN t.tgt_id ELSE t.src_id END COLLATE "C") AS rank
    FROM touching t JOIN degree s ON s.id = t.src_id JOIN degree d ON d.id = t.tgt_id
    LEFT JOIN given gs ON gs.id = t.src_id LEFT JOIN given gt ON gt.id = t.tgt_id
   ORDER BY rank LIMIT $3
)
SELECT best.src_id, best.tgt_id, {_RELATION}
  FROM best JOIN lightrag_graph_edges e ON e.workspace = $1 AND e.namespace = '{NAMESPACE}'
   AND e.src_id = best.src_id AND e.tgt_id = best.tgt_id
 ORDER BY best.rank
"""  # noqa: S608 - put together from constants
_IS_SPOKEN_OF = f"AND (e.src_id, e.tgt_id) IN ({SPOKEN_PAIRS.format(tenant='$4', versions='$5')})"


class GraphReader:
    """One workspace's graph. Runs inside the workspace's fence; vectors are of the workspace's embedding model.

    With the versions that a filter has `allowed` it finds only what these speak of, and their chunks; before anything is
    ranked, so that a limit is filled as far as it can be.
    """

    def __init__(
        self, database: Reads, ref: WorkspaceRef, suffix: str, *, allowed: Collection[UUID] | None = None
    ) -> None:
        self._database = database
        self._workspace = ref.engine_name
        self._suffix = suffix
        self._allowed = None if allowed is None else (ref.tenant_id, list(allowed))

    @property
    def is_narrowed(self) -> bool:
        return self._allowed is not None

    async def nearest_entities(self, vector: Vectors, limit: int) -> list[Row]:
        """Rows of entity_name, entity_type, description, source_id, score (cosine); nearest first."""
        nearest = NEAREST_SPOKEN_NAMES if self.is_narrowed else NEAREST_NAMES
        return await self._nearest(_OF_NEAREST_NAMES.format(nearest=nearest), vector, limit)

    async def nearest_relations(self, vector: Vectors, limit: int) -> list[Row]:
        """Rows of src_id, tgt_id, weight, description, keywords, source_id, score (cosine); nearest first."""
        nearest = NEAREST_SPOKEN_PAIRS if self.is_narrowed else NEAREST_PAIRS
        return await self._nearest(_OF_NEAREST_PAIRS.format(nearest=nearest), vector, limit)

    async def nearest_chunks(self, vector: Vectors, limit: int) -> list[str]:
        """Ids in the engine, nearest first."""
        if self._allowed is None:
            return [row["id"] for row in await self._nearest(_NEAREST_CHUNKS, vector, limit)]
        if not vector.any():
            return []
        versions = [str(version) for version in self._allowed[1]]
        sql = _NEAREST_ALLOWED_CHUNKS.format(suffix=self._suffix)
        return [row["id"] for row in await self._database.fetch(sql, self._workspace, Vector(vector), limit, versions)]

    async def entities(self, names: Sequence[str]) -> list[Row]:
        """Like `nearest_entities` without score, in the order of `names`; what is no entity is left out."""
        rows = await self._database.fetch(_ENTITIES, self._workspace, list(names)) if names else ()
        found = {row["entity_name"]: dict(row) for row in rows}
        return [found[name] for name in names if name in found]

    async def relations_of(self, names: Sequence[str], limit: int) -> list[Row]:
        """The best connected relations of these entities, like `nearest_relations` without score, best first."""
        if not names:
            return []
        sql = _RELATIONS_OF.format(spoken=_IS_SPOKEN_OF if self.is_narrowed else "")
        arguments = (self._workspace, list(names), limit, *(self._allowed or ()))
        return [dict(row) for row in await self._database.fetch(sql, *arguments)]

    async def _nearest(self, statement: str, vector: Vectors, limit: int) -> list[Row]:
        # A vector without a direction is near nothing.
        if not vector.any():
            return []
        sql = statement.format(suffix=self._suffix)
        arguments = (self._workspace, Vector(vector), limit)
        if "$4" in sql:
            arguments = (*arguments, *(self._allowed or ()))
        return [dict(row) for row in await self._database.fetch(sql, *arguments)]
