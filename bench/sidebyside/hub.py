"""Gives one entity of a workspace thousands of relations, as a company's own name has in its documents."""

from bench.sidebyside.statements import StatementCounter

DEGREE = 2000
_BIGGEST = """
SELECT name FROM (
  SELECT src_id AS name FROM lightrag_graph_edges WHERE workspace = '{workspace}'
  UNION ALL SELECT tgt_id FROM lightrag_graph_edges WHERE workspace = '{workspace}') ends
 GROUP BY name ORDER BY count(*) DESC, name LIMIT 1
"""
# Each new relation is told by the chunks that tell of its other end, so that it is as trusted as that.
_RELATE = """
WITH ends AS (
  SELECT n.id AS other, n.properties, LEAST(n.id, $$%(hub)s$$ COLLATE "C") AS src, GREATEST(n.id, $$%(hub)s$$ COLLATE "C") AS tgt
    FROM lightrag_graph_nodes n
   WHERE n.workspace = '%(workspace)s' AND n.id <> $$%(hub)s$$
     AND NOT EXISTS (SELECT 1 FROM lightrag_graph_edges e WHERE e.workspace = n.workspace
                      AND (e.src_id, e.tgt_id) IN ((n.id, $$%(hub)s$$), ($$%(hub)s$$, n.id)))
   ORDER BY md5(n.id) LIMIT %(count)s),
edges AS (
  INSERT INTO lightrag_graph_edges (workspace, namespace, src_id, tgt_id, properties)
  SELECT '%(workspace)s', 'chunk_entity_relation', src, tgt,
         jsonb_build_object('weight', 1.0, 'keywords', 'related', 'description', 'It deals with ' || other || '.',
                            'source_id', properties->'source_id', 'file_path', properties->'file_path',
                            'created_at', properties->'created_at')
    FROM ends)
INSERT INTO lightrag_relation_chunks (workspace, id, chunk_ids, count)
SELECT '%(workspace)s', src || '<SEP>' || tgt, c.chunk_ids, c.count
  FROM ends JOIN lightrag_entity_chunks c ON c.workspace = '%(workspace)s' AND c.id = ends.other
ON CONFLICT DO NOTHING
"""
_DEGREE = """
SELECT count(*) AS n FROM lightrag_graph_edges
 WHERE workspace = '{workspace}' AND (src_id = $${hub}$$ OR tgt_id = $${hub}$$)
"""


def grow_hub(database: StatementCounter, workspace: str) -> tuple[str, int]:
    """The name of the workspace's best connected entity, and its degree once it is related to up to `DEGREE` others."""
    hub = str(database.fetch(_BIGGEST.format(workspace=workspace))[0]["name"])
    degree = _degree(database, workspace, hub)
    database.fetch(_RELATE % {"hub": hub, "workspace": workspace, "count": max(0, DEGREE - degree)})
    database.fetch("ANALYZE lightrag_graph_edges")
    return hub, _degree(database, workspace, hub)


def _degree(database: StatementCounter, workspace: str, hub: str) -> int:
    return int(database.fetch(_DEGREE.format(workspace=workspace, hub=hub))[0]["n"])
