"""What a search reads of the graph: a handful of set-based statements, each bounded, on the engine's own tables.

They find and order what LightRAG's own calls would (facts, section 5), but fetch nothing that is thrown away again: of
the edges of a hub only those that can still be used are read, ranked by the database.
"""

from collections.abc import Sequence
from typing import Any

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

_NEAREST_ENTITIES = f"""
SELECT {_ENTITY}
  FROM (SELECT entity_name, content_vector <=> $2 AS distance FROM lightrag_vdb_entity_{{suffix}}
         WHERE workspace = $1 ORDER BY content_vector <=> $2 LIMIT $3) near
  JOIN lightrag_graph_nodes n ON n.workspace = $1 AND n.namespace = '{NAMESPACE}' AND n.id = near.entity_name
 ORDER BY near.distance
"""  # noqa: S608 - put together from constants

_ENTITIES = f"""
SELECT {_ENTITY} FROM lightrag_graph_nodes n WHERE n.workspace = $1 AND n.namespace = '{NAMESPACE}' AND n.id = ANY ($2)
"""  # noqa: S608 - put together from constants

# The ends as the vector's row has them: entities are found in their order.
_NEAREST_RELATIONS = f"""
SELECT near.source_id AS src_id, near.target_id AS tgt_id, {_RELATION}
  FROM (SELECT source_id, target_id, content_vector <=> $2 AS distance FROM lightrag_vdb_relation_{{suffix}}
         WHERE workspace = $1 ORDER BY content_vector <=> $2 LIMIT $3) near
  JOIN lightrag_graph_edges e ON e.workspace = $1 AND e.namespace = '{NAMESPACE}'
   AND e.src_id = LEAST(near.source_id COLLATE "C", near.target_id COLLATE "C")
   AND e.tgt_id = GREATEST(near.source_id COLLATE "C", near.target_id COLLATE "C")
 ORDER BY near.distance
"""  # noqa: S608 - put together from constants

_NEAREST_CHUNKS = """
SELECT id FROM lightrag_vdb_chunks_{suffix} WHERE workspace = $1 ORDER BY content_vector <=> $2 LIMIT $3
"""

# By the sum of the ends' degrees, then by weight; equals by the first of the given names that they belong to, then by
# the name at the other end. Descriptions are read of the best ones only.
_RELATIONS_OF = f"""
WITH touching AS MATERIALIZED (
  SELECT e.src_id, e.tgt_id, COALESCE((e.properties->>'weight')::float8, 1) AS weight
    FROM lightrag_graph_edges e WHERE e.workspace = $1 AND e.namespace = '{NAMESPACE}' AND e.src_id = ANY ($2)
  UNION ALL
  SELECT e.src_id, e.tgt_id, COALESCE((e.properties->>'weight')::float8, 1)
    FROM lightrag_graph_edges e
   WHERE e.workspace = $1 AND e.namespace = '{NAMESPACE}' AND e.tgt_id = ANY ($2) AND e.src_id <> ALL ($2)
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


class GraphReader:
    """One workspace's graph. Runs inside the workspace's fence; vectors are of the workspace's embedding model."""

    def __init__(self, database: Reads, ref: WorkspaceRef, suffix: str) -> None:
        self._database = database
        self._workspace = ref.engine_name
        self._suffix = suffix

    async def nearest_entities(self, vector: Vectors, limit: int) -> list[Row]:
        """Rows of entity_name, entity_type, description, source_id; nearest first."""
        return await self._nearest(_NEAREST_ENTITIES, vector, limit)

    async def nearest_relations(self, vector: Vectors, limit: int) -> list[Row]:
        """Rows of src_id, tgt_id, weight, description, keywords, source_id; nearest first."""
        return await self._nearest(_NEAREST_RELATIONS, vector, limit)

    async def nearest_chunks(self, vector: Vectors, limit: int) -> list[str]:
        """Ids in the engine, nearest first."""
        return [row["id"] for row in await self._nearest(_NEAREST_CHUNKS, vector, limit)]

    async def entities(self, names: Sequence[str]) -> list[Row]:
        """Like `nearest_entities`, in the order of `names`; what is no entity is left out."""
        rows = await self._database.fetch(_ENTITIES, self._workspace, list(names)) if names else ()
        found = {row["entity_name"]: dict(row) for row in rows}
        return [found[name] for name in names if name in found]

    async def relations_of(self, names: Sequence[str], limit: int) -> list[Row]:
        """The best connected relations of these entities, like `nearest_relations`, best first."""
        if not names:
            return []
        return [dict(row) for row in await self._database.fetch(_RELATIONS_OF, self._workspace, list(names), limit)]

    async def _nearest(self, statement: str, vector: Vectors, limit: int) -> list[Row]:
        # A vector without a direction is near nothing.
        if not vector.any():
            return []
        sql = statement.format(suffix=self._suffix)
        return [dict(row) for row in await self._database.fetch(sql, self._workspace, Vector(vector), limit)]
