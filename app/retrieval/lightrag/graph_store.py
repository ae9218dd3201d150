"""Our own statements on the engine's tables: what LightRAG offers no call for, or only one that hides its errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.db.vector_tables import DimensionMismatch
from app.errors import Conflict
from app.retrieval.contract import GraphStoreChanged, GraphStoreName, Statement, Vector, WorkspaceRef
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.reads import Reads

SEPARATOR = "<SEP>"
NAMESPACE = "chunk_entity_relation"
# Stands among the chunks behind what somebody made by hand.
MANUAL = "manual"
ANSWERS = "lightrag_llm_cache"
# Documents that LightRAG's next run would drag along, whoever left them (facts F2).
ACTIVE = ("pending", "parsing", "analyzing", "processing")

_DIMENSIONS = """
SELECT c.relname, a.atttypmod AS dimension
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'content_vector'
 WHERE c.oid = ANY (SELECT to_regclass(name) FROM unnest($1::text[]) name)
"""

# An answer that several versions' chunks share carries the id of one of them, and rebuilding finds it by that id only.
_HAND_ON_SHARED_ANSWERS = """
UPDATE lightrag_llm_cache k SET chunk_id = heir.chunk_id
  FROM (SELECT DISTINCT ON (used.key) used.key, c.id AS chunk_id
          FROM lightrag_doc_chunks c CROSS JOIN LATERAL jsonb_array_elements_text(c.llm_cache_list) used (key)
         WHERE c.workspace = $1 AND c.full_doc_id <> $2
         ORDER BY used.key, c.id) heir
 WHERE k.workspace = $1 AND k.id = heir.key AND k.chunk_id LIKE $2 || '-chunk-%'
"""

_ADOPT_ANSWERS = """
UPDATE lightrag_llm_cache k SET chunk_id = c.id
  FROM lightrag_doc_chunks c CROSS JOIN LATERAL jsonb_array_elements_text(c.llm_cache_list) used (key)
 WHERE c.workspace = $1 AND c.full_doc_id = $2 AND k.workspace = $1 AND k.id = used.key
   AND NOT EXISTS (SELECT 1 FROM lightrag_doc_chunks o WHERE o.workspace = $1 AND o.id = k.chunk_id)
"""

# Only chunks that stand somewhere in the store still count as support.
_TOUCHED_NAMES = """
SELECT id, ARRAY(SELECT l.c FROM jsonb_array_elements_text(t.chunk_ids) WITH ORDINALITY l (c, n)
                  WHERE l.c NOT LIKE $2 || '-chunk-%' ORDER BY l.n) AS remaining
  FROM {table} t WHERE workspace = $1 AND strpos(chunk_ids::text, $2) > 0
"""
_TOUCHED_NODES = """
SELECT id, ARRAY(SELECT l.c FROM unnest(string_to_array(properties->>'source_id', '<SEP>')) WITH ORDINALITY l (c, n)
                  WHERE l.c NOT LIKE $2 || '-chunk-%' ORDER BY l.n) AS remaining
  FROM lightrag_graph_nodes
 WHERE workspace = $1 AND (strpos(properties->>'source_id', $2) > 0 OR strpos(properties->>'file_path', $2) > 0)
"""
_TOUCHED_EDGES = """
SELECT src_id || '<SEP>' || tgt_id AS id,
       ARRAY(SELECT l.c FROM unnest(string_to_array(properties->>'source_id', '<SEP>')) WITH ORDINALITY l (c, n)
              WHERE l.c NOT LIKE $2 || '-chunk-%' ORDER BY l.n) AS remaining
  FROM lightrag_graph_edges
 WHERE workspace = $1 AND (strpos(properties->>'source_id', $2) > 0 OR strpos(properties->>'file_path', $2) > 0)
"""

# A vector belongs to a text, whoever has it.
_VECTORS_OF = """
WITH chunk AS (SELECT array_agg(id) AS ids FROM lightrag_doc_chunks WHERE workspace = $1 AND full_doc_id = ANY ($2))
SELECT content, content_vector FROM lightrag_vdb_chunks_{suffix} WHERE workspace = $1 AND full_doc_id = ANY ($2)
UNION ALL
SELECT e.content, e.content_vector FROM lightrag_vdb_entity_{suffix} e, chunk
 WHERE e.workspace = $1 AND e.chunk_ids && chunk.ids
UNION ALL
SELECT r.content, r.content_vector FROM lightrag_vdb_relation_{suffix} r, chunk
 WHERE r.workspace = $1 AND r.chunk_ids && chunk.ids
"""

_DOCUMENTS_OF = """
SELECT id FROM lightrag_doc_status
 WHERE workspace = $1 AND (id = $2 OR (id LIKE 'dup-%' AND metadata->>'original_doc_id' = $2))
UNION SELECT $2
"""
_CHUNKS_OF = """
SELECT id FROM lightrag_doc_chunks WHERE workspace = $1 AND full_doc_id = $2
UNION SELECT id FROM lightrag_vdb_chunks_{suffix} WHERE workspace = $1 AND full_doc_id = $2
"""
_ANSWERS_OF = """
SELECT id FROM lightrag_llm_cache WHERE workspace = $1 AND (chunk_id LIKE $2 || '-chunk-%' OR cache_type <> 'extract')
"""
_LEFTOVERS = """
SELECT id FROM lightrag_doc_status WHERE workspace = $1 AND (id = $2 OR status = ANY ($3))
UNION SELECT id FROM lightrag_doc_status WHERE workspace = $1 AND file_path = $2
UNION SELECT full_doc_id FROM lightrag_doc_chunks WHERE workspace = $1 AND full_doc_id = $2
UNION SELECT id FROM lightrag_doc_full WHERE workspace = $1 AND id = $2
"""

_TRACES = """
SELECT place, n FROM (
  SELECT 'lightrag_doc_chunks' AS place, count(*) AS n FROM lightrag_doc_chunks WHERE workspace = $1 AND full_doc_id = $2
  UNION ALL SELECT 'lightrag_doc_full', count(*) FROM lightrag_doc_full WHERE workspace = $1 AND id = $2
  UNION ALL SELECT 'lightrag_doc_status', count(*) FROM lightrag_doc_status WHERE workspace = $1 AND id = $2
  UNION ALL SELECT 'lightrag_full_entities', count(*) FROM lightrag_full_entities WHERE workspace = $1 AND id = $2
  UNION ALL SELECT 'lightrag_full_relations', count(*) FROM lightrag_full_relations WHERE workspace = $1 AND id = $2
  UNION ALL SELECT 'lightrag_entity_chunks', count(*) FROM lightrag_entity_chunks
             WHERE workspace = $1 AND strpos(chunk_ids::text, $2) > 0
  UNION ALL SELECT 'lightrag_relation_chunks', count(*) FROM lightrag_relation_chunks
             WHERE workspace = $1 AND strpos(chunk_ids::text, $2) > 0
  UNION ALL SELECT 'lightrag_graph_nodes', count(*) FROM lightrag_graph_nodes
             WHERE workspace = $1 AND (strpos(properties->>'source_id', $2) > 0 OR strpos(properties->>'file_path', $2) > 0)
  UNION ALL SELECT 'lightrag_graph_edges', count(*) FROM lightrag_graph_edges
             WHERE workspace = $1 AND (strpos(properties->>'source_id', $2) > 0 OR strpos(properties->>'file_path', $2) > 0)
  UNION ALL SELECT 'lightrag_vdb_chunks', count(*) FROM lightrag_vdb_chunks_{suffix}
             WHERE workspace = $1 AND full_doc_id = $2
  UNION ALL SELECT 'lightrag_vdb_entity', count(*) FROM lightrag_vdb_entity_{suffix}
             WHERE workspace = $1 AND (strpos(file_path, $2) > 0 OR strpos(CAST(chunk_ids AS text), $2) > 0)
  UNION ALL SELECT 'lightrag_vdb_relation', count(*) FROM lightrag_vdb_relation_{suffix}
             WHERE workspace = $1 AND (strpos(file_path, $2) > 0 OR strpos(CAST(chunk_ids AS text), $2) > 0)
  UNION ALL SELECT 'lightrag_llm_cache', count(*) FROM lightrag_llm_cache
             WHERE workspace = $1 AND chunk_id LIKE $2 || '-chunk-%'
) traces WHERE n > 0
"""

# Of what an insert writes under the version's own id; each is found by an index.
_HOLDS = """
SELECT EXISTS (SELECT 1 FROM lightrag_doc_status WHERE workspace = $1 AND id = $2)
    OR EXISTS (SELECT 1 FROM lightrag_doc_full WHERE workspace = $1 AND id = $2)
    OR EXISTS (SELECT 1 FROM lightrag_doc_chunks WHERE workspace = $1 AND full_doc_id = $2) AS holds
"""

_STORE_NOW = "SELECT graph_store FROM workspaces WHERE tenant_id = $1 AND id = $2"
_OBSTACLE = "SELECT graph_store_obstacle() AS obstacle"

_TABLES = """
SELECT relname FROM pg_class
 WHERE relkind IN ('r', 'p') AND NOT relispartition
   AND relnamespace = 'public'::regnamespace AND starts_with(relname, 'lightrag_')
 ORDER BY relname <> 'lightrag_graph_edges', relname
"""


# Names, each with chunks that remain to it.
Remaining = Sequence[tuple[str, Sequence[str]]]


class EngineTablesMissing(Conflict):
    """An embedding profile without its tables: it was not registered on this database."""

    code = "engine_tables_missing"
    title = "The embedding model has no tables"


@dataclass(frozen=True)
class Touched:
    """What a version left in the graph: names (relations as `source<SEP>target`), each with the chunks that remain."""

    entities: Mapping[str, Sequence[str]]
    relations: Mapping[str, Sequence[str]]

    @property
    def supported(self) -> "Touched":
        """Those to which a chunk remains."""
        return Touched(
            {name: chunks for name, chunks in self.entities.items() if chunks},
            {name: chunks for name, chunks in self.relations.items() if chunks},
        )

    def __bool__(self) -> bool:
        return bool(self.entities or self.relations)


async def check_vector_tables(database: EngineDatabase, suffix: str, dimension: int) -> None:
    """Raise unless the engine's vector tables of `suffix` are there for vectors of `dimension`."""
    names = [f"lightrag_vdb_{kind}_{suffix}" for kind in ("chunks", "entity", "relation")]
    found = {row["relname"]: row["dimension"] for row in await database.fetch(_DIMENSIONS, names)}
    if missing := set(names) - set(found):
        raise EngineTablesMissing(f"table {min(missing)} does not exist; register the embedding model first")
    for held in found.values():
        if held != dimension:
            raise DimensionMismatch(
                f"the workspace's vectors have {held} dimensions, the embedding model gives {dimension}",
                expected=dimension,
                found=held,
            )


async def require_store(database: Reads, ref: WorkspaceRef, store: GraphStoreName) -> None:
    """Under the lease a graph does not move: what was opened before it was taken may be out of date.

    Raises `GraphStoreChanged`.
    """
    rows = await database.fetch(_STORE_NOW, ref.tenant_id, ref.workspace_id)
    if rows and rows[0]["graph_store"] != store:
        raise GraphStoreChanged("the workspace's graph has moved to another store; try again")


async def obstacle_to_age(database: Reads) -> str | None:
    """Why no graph can be kept in Apache AGE here, as a word."""
    found: str | None = (await database.fetch(_OBSTACLE))[0]["obstacle"]
    return found


class GraphStore:
    """The engine's rows of one workspace. Every call runs inside that workspace's fence, which the caller has entered."""

    def __init__(self, database: EngineDatabase, workspace: str, suffix: str) -> None:
        self._database = database
        self._workspace = workspace
        self._suffix = suffix

    async def vectors_of(self, versions: Sequence[str]) -> dict[str, Vector]:
        """The vectors of what these versions say, by text."""
        rows = await self._database.fetch(_VECTORS_OF.format(suffix=self._suffix), self._workspace, list(versions))
        return {row["content"]: np.asarray(row["content_vector"].to_numpy(), dtype=np.float32) for row in rows}

    async def leftovers(self, version_id: str) -> list[str]:
        """Versions to be purged before this one is inserted: itself, and whatever LightRAG would take up by itself."""
        rows = await self._database.fetch(_LEFTOVERS, self._workspace, version_id, list(ACTIVE))
        return [row["id"] for row in rows]

    async def answers_of(self, version_id: str) -> list[str]:
        """Keys of cached answers to be forgotten with the version.

        Summaries and keywords are cached by their prompt, which holds text of any document; they only save money.
        """
        return await self._ids(_ANSWERS_OF, version_id)

    async def hand_on_shared_answers(self, version_id: str) -> None:
        """Give cached answers that other versions use as well to those, before this version goes."""
        await self._database.fetch(_HAND_ON_SHARED_ANSWERS, self._workspace, version_id)

    def adoption(self, version_id: str) -> Statement:
        """Gives cached answers of chunks that are not there to this version's chunks, which use them."""
        return Statement(_ADOPT_ANSWERS, (self._workspace, version_id))

    async def open(self) -> None:
        """Make room for the graph; the tables are there."""

    async def empty(self) -> None:
        """Remove what of the graph stands outside the tables that `clearing` names."""

    async def touched(self, version_id: str) -> Touched:
        """Entities and relations that still name this version."""
        tracked = [
            await self._named(_TOUCHED_NAMES.format(table=f"lightrag_{kind}_chunks"), version_id)
            for kind in ("entity", "relation")
        ]
        nodes, edges = await self._graph_naming(version_id)
        return Touched(_joined(tracked[0], nodes), _joined(tracked[1], edges))

    async def documents_of(self, version_id: str) -> list[str]:
        """Ids of LightRAG's documents that are the version, or marks that it was refused as a duplicate."""
        return await self._ids(_DOCUMENTS_OF, version_id)

    async def chunks_of(self, version_id: str) -> list[str]:
        """Ids of all chunks that say that they are the version's."""
        return await self._ids(_CHUNKS_OF.format(suffix=self._suffix), version_id)

    async def holds(self, version_id: str) -> bool:
        """Whether anything of the version is there, by the rows that stand for it; else everything that names it is looked for."""
        rows = await self._database.fetch(_HOLDS, self._workspace, version_id)
        return bool(rows[0]["holds"]) or bool(await self.traces(version_id))

    async def traces(self, version_id: str) -> dict[str, int]:
        """How many rows of which tables still name the version; empty if it is gone."""
        statement = _TRACES.format(suffix=self._suffix)
        rows = await self._database.fetch(statement, self._workspace, version_id)
        return {row["place"]: row["n"] for row in rows}

    async def clearing(self) -> list[Statement]:
        """Statements that delete every row of the workspace, whatever embedding it was made with."""
        return [
            Statement(f'DELETE FROM "{row["relname"]}" WHERE workspace = $1', (self._workspace,))  # noqa: S608
            for row in await self._database.fetch(_TABLES)
        ]

    async def _ids(self, statement: str, version_id: str) -> list[str]:
        return [row["id"] for row in await self._database.fetch(statement, self._workspace, version_id)]

    async def _graph_naming(self, version_id: str) -> tuple[Remaining, Remaining]:
        """Nodes and edges that name the version, each with the chunks of others that it stands on."""
        return await self._named(_TOUCHED_NODES, version_id), await self._named(_TOUCHED_EDGES, version_id)

    async def _named(self, statement: str, version_id: str) -> Remaining:
        rows = await self._database.fetch(statement, self._workspace, version_id)
        return [(row["id"], row["remaining"]) for row in rows]


def _joined(*found: Remaining) -> dict[str, list[str]]:
    joined: dict[str, list[str]] = {}
    for name, chunks in (row for rows in found for row in rows):
        known = joined.setdefault(name, [])
        known += [chunk for chunk in chunks if chunk and chunk not in known]
    return joined
