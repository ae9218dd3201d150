"""Which documents stand behind an entity or relation, which of them are trusted, and what those alone say of it.

LightRAG blends what all chunks say into one text. Where some of them belong to versions that are not trusted, the text
is put together again from the mentions of those that are.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from typing import Any, Final
from uuid import UUID

from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.graph_store import MANUAL, NAMESPACE, SEPARATOR
from app.retrieval.lightrag.reads import Reads

MAX_DOCUMENTS = 50
MAX_MENTIONS = 20
MAX_CHUNKS = 200
MAX_RELATIONS = 500

# Versions that the graph may answer from; the same rule as the passages' (app/retrieval/store/trust.py), as the
# engine's role may read it.
TRUSTED = """
SELECT l.version_id, l.document_id, s.state
  FROM live_versions l
  JOIN index_states s ON s.tenant_id = l.tenant_id AND s.version_id = l.version_id AND s.engine = l.engine
                     AND s.state = ANY ({states}) AND s.cleanliness = 'clean'
  JOIN documents d ON d.tenant_id = l.tenant_id AND d.id = l.document_id AND d.deleting_at IS NULL
 WHERE l.tenant_id = {tenant} AND l.engine = 'graph'
"""

# With the versions that a filter allows, or NULL.
_USABLE = f"{TRUSTED} AND l.workspace_id = {{workspace}} AND ({{allowed}}::uuid[] IS NULL OR l.version_id = ANY ({{allowed}}))"

_SUPPORT = f"""
WITH tracked AS (
  SELECT true AS is_entity, id, chunk_ids FROM lightrag_entity_chunks WHERE workspace = $1 AND id = ANY ($2)
  UNION ALL SELECT false, id, chunk_ids FROM lightrag_relation_chunks WHERE workspace = $1 AND id = ANY ($5)
), said AS (
  SELECT is_entity, id AS name, l.c AS chunk, l.n AS place, l.c = '{MANUAL}' AS is_manual,
         CASE WHEN l.c <> '{MANUAL}' THEN CAST(substr(l.c, 1, 36) AS uuid) END AS version_id
    FROM tracked CROSS JOIN LATERAL jsonb_array_elements_text(chunk_ids) WITH ORDINALITY l (c, n)
   WHERE l.c ~ '^[0-9a-f-]{{36}}-chunk-' OR l.c = '{MANUAL}'
)
SELECT said.is_entity, said.name, bool_or(live.document_id IS NULL AND NOT said.is_manual) AS is_mixed,
       bool_or(live.document_id IS NOT NULL OR (said.is_manual AND $7::uuid[] IS NULL)) AS is_supported,
       (array_agg(DISTINCT live.document_id) FILTER (WHERE live.document_id IS NOT NULL))[:{MAX_DOCUMENTS}] AS documents,
       coalesce(bool_or(live.state = 'partial'), false) AS is_partial,
       (array_agg(said.chunk ORDER BY said.place) FILTER (WHERE live.document_id IS NOT NULL))[:{MAX_CHUNKS}] AS chunks,
       (array_agg(DISTINCT said.version_id) FILTER (WHERE live.document_id IS NULL))[:{MAX_DOCUMENTS}] AS others
  FROM said LEFT JOIN ({_USABLE.format(states="$4", tenant="$3", workspace="$6", allowed="$7")}) live
    ON live.version_id = said.version_id
 GROUP BY said.is_entity, said.name
"""  # noqa: S608 - put together from constants

_MENTIONS = f"""
SELECT m.name, m.target, m.type, m.description, m.keywords, m.version_id, m.chunk_ordinal
  FROM mentions m
  JOIN ({_USABLE.format(states="$3", tenant="$2", workspace="$1", allowed="$5")}) live ON live.version_id = m.version_id
 WHERE m.tenant_id = $2 AND m.workspace_id = $1 AND md5(m.name) = ANY ($4)
 ORDER BY m.id
"""  # noqa: S608 - put together from constants

# Relations are mentioned from either end, and an entity may be nothing but the end of one.
_MENTIONS_AS_END = f"""
SELECT m.target AS name, NULL AS target, NULL AS type, m.description, NULL AS keywords, m.version_id, m.chunk_ordinal
  FROM mentions m
  JOIN ({_USABLE.format(states="$3", tenant="$2", workspace="$1", allowed="$5")}) live ON live.version_id = m.version_id
 WHERE m.tenant_id = $2 AND m.workspace_id = $1 AND m.target IS NOT NULL AND md5(m.target) = ANY ($4)
 ORDER BY m.id
"""  # noqa: S608 - put together from constants

_ENTITIES = f"""
SELECT n.id AS name, n.properties->>'entity_type' AS type, n.properties->>'description' AS description,
       (SELECT count(*) FROM lightrag_graph_edges e
         WHERE e.workspace = $1 AND e.namespace = '{NAMESPACE}' AND e.src_id = n.id)
       + (SELECT count(*) FROM lightrag_graph_edges e
           WHERE e.workspace = $1 AND e.namespace = '{NAMESPACE}' AND e.tgt_id = n.id) AS degree
  FROM lightrag_graph_nodes n
 WHERE n.workspace = $1 AND n.namespace = '{NAMESPACE}'
   AND ($5::text IS NULL OR starts_with(lower(n.id), lower($5))) AND ($6::text IS NULL OR n.id COLLATE "C" > $6)
   AND EXISTS (SELECT 1 FROM lightrag_entity_chunks t CROSS JOIN LATERAL jsonb_array_elements_text(t.chunk_ids) c
                 LEFT JOIN ({TRUSTED.format(states="$3", tenant="$2")}) live ON live.version_id::text = substr(c, 1, 36)
                WHERE t.workspace = $1 AND t.id = n.id AND (live.version_id IS NOT NULL OR c = '{MANUAL}'))
 ORDER BY n.id COLLATE "C" LIMIT $4
"""  # noqa: S608 - put together from constants

_RELATIONS = f"""
SELECT e.src_id, e.tgt_id, e.properties
  FROM lightrag_graph_edges e
 WHERE e.workspace = $1 AND e.namespace = '{NAMESPACE}' AND (e.src_id = $2 OR e.tgt_id = $2)
 ORDER BY (e.properties->>'weight')::float DESC NULLS LAST, e.src_id, e.tgt_id LIMIT {MAX_RELATIONS}
"""  # noqa: S608 - put together from constants

_RELATION = f"""
SELECT src_id, tgt_id, properties FROM lightrag_graph_edges
 WHERE workspace = $1 AND namespace = '{NAMESPACE}' AND src_id = $2 AND tgt_id = $3
"""  # noqa: S608 - put together from constants

_CHUNKS = f"""
SELECT live.version_id, CAST(substr(c, 44) AS int) AS ordinal
  FROM lightrag_entity_chunks t CROSS JOIN LATERAL jsonb_array_elements_text(t.chunk_ids) WITH ORDINALITY l (c, n)
  JOIN ({TRUSTED.format(states="$4", tenant="$3")}) live ON live.version_id::text = substr(c, 1, 36)
 WHERE t.workspace = $1 AND t.id = $2 AND c ~ '^[0-9a-f-]{{36}}-chunk-[0-9]+$'
 ORDER BY l.n
"""  # noqa: S608 - put together from constants

_EXISTING = f"""
SELECT id FROM lightrag_graph_nodes WHERE workspace = $1 AND namespace = '{NAMESPACE}' AND id = ANY ($2)
"""  # noqa: S608 - put together from constants


_EDITED = """
SELECT name, target, fields->>'description' AS description, fields->>'keywords' AS keywords, fields->>'type' AS type,
       CAST(fields->>'weight' AS float8) AS weight
  FROM entity_edits WHERE tenant_id = $2 AND workspace_id = $1 AND name = ANY ($3)"""

_COUNT_RELATIONS = f"""
SELECT count(*) AS n FROM lightrag_graph_edges
 WHERE workspace = $1 AND namespace = '{NAMESPACE}' AND (src_id = ANY ($2) OR tgt_id = ANY ($2))
"""  # noqa: S608 - put together from constants


@dataclass(frozen=True)
class Support:
    """What stands behind one name. `is_mixed`: others than the versions that may be used spoke of it too; `is_partial`:
    one that may be used is indexed in part only; `chunks`: the first of those that may be used, as the engine names them."""

    document_ids: tuple[UUID, ...]
    is_mixed: bool
    is_partial: bool
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Supported:
    """Of entities by name and of relations by `relation_key`; `withheld` are the versions that alone stand behind a name."""

    entities: Mapping[str, Support]
    relations: Mapping[str, Support]
    withheld: Mapping[tuple[bool, str], tuple[UUID, ...]]  # by whether it is an entity, and its name


NO_SUPPORT: Final = Supported({}, {}, {})


@dataclass(frozen=True)
class Said:
    """What versions that may be used alone say of one name. `weight`: how many of their chunks do."""

    description: str
    keywords: str
    type: str | None = None
    weight: float = 0.0


def relation_key(one: str, other: str) -> str:
    """The name of a relation in the engine's tables."""
    return SEPARATOR.join(sorted((one, other)))


class SupportStore:
    """Reads about one workspace's entities and relations. Runs inside the workspace's fence."""

    def __init__(
        self,
        database: Reads,
        ref: WorkspaceRef,
        *,
        include_partial: bool = False,
        allowed: Collection[UUID] | None = None,
    ) -> None:
        """With the versions that a filter has `allowed` nothing else stands behind a name, nor what people say of it."""
        self._database = database
        self._ref = ref
        self._allowed = None if allowed is None else list(allowed)
        self.states = ["ready", "partial"] if include_partial else ["ready"]

    async def of_entities(self, names: Sequence[str]) -> Mapping[str, Support]:
        """Names without trusted support are left out."""
        return (await self.support(names, ())).entities

    async def support(self, names: Sequence[str], keys: Sequence[str]) -> Supported:
        """Of entities by name and of relations by `relation_key`."""
        ref = self._ref
        found: dict[bool, dict[str, Support]] = {True: {}, False: {}}
        withheld: dict[tuple[bool, str], tuple[UUID, ...]] = {}
        rows: Sequence[Any] = ()
        if names or keys:
            arguments = (ref.engine_name, list(names), ref.tenant_id, self.states, list(keys), ref.workspace_id)
            rows = await self._database.fetch(_SUPPORT, *arguments, self._allowed)
        for row in rows:
            is_entity, name = row["is_entity"], row["name"]
            if not row["is_supported"]:
                withheld[is_entity, name] = tuple(row["others"] or ())
                continue
            documents, chunks = tuple(row["documents"] or ()), tuple(row["chunks"] or ())
            is_mixed = row["is_mixed"] or self._allowed is not None
            found[is_entity][name] = Support(documents, is_mixed, row["is_partial"], chunks)
        return Supported(found[True], found[False], withheld)

    async def said_of(self, keys: Sequence[str]) -> dict[str, Said]:
        """What trusted mentions say of entities (by name) and relations (by `relation_key`), each sentence once.

        Of an entity that is only an end of relations, what is said of these.
        """
        if not keys:
            return {}
        names = sorted({name for key in keys for name in key.split(SEPARATOR)})
        rows = await self._mentions(_MENTIONS, [_md5(name) for name in names])
        wanted = set(keys)
        told = _said(rows, wanted)
        only_ends = [key for key in keys if key not in told and SEPARATOR not in key]
        if only_ends:
            of_ends = [{**row, "target": None, "keywords": None} for row in rows if row["name"] in set(only_ends)]
            of_ends += [dict(row) for row in await self._mentions(_MENTIONS_AS_END, [_md5(name) for name in only_ends])]
            told |= _said(of_ends, set(only_ends))
        return told if self._allowed is not None else told | await self._edited(names, wanted, told)

    async def _mentions(self, statement: str, names: Sequence[str]) -> Sequence[Any]:
        ref = self._ref
        return await self._database.fetch(
            statement, ref.workspace_id, ref.tenant_id, self.states, list(names), self._allowed
        )

    async def _edited(self, names: Sequence[str], wanted: set[str], told: dict[str, Said]) -> dict[str, Said]:
        """What a person says stands instead of what documents say."""
        rows = await self._database.fetch(_EDITED, self._ref.workspace_id, self._ref.tenant_id, list(names))
        found = {}
        for row in rows:
            key = row["name"] if row["target"] is None else relation_key(row["name"], row["target"])
            if key in wanted:
                before = told.get(key, Said("", ""))
                description = (row["description"] or before.description).replace(SEPARATOR, "\n")
                found[key] = Said(
                    description,
                    row["keywords"] or before.keywords,
                    row["type"] or before.type,
                    before.weight if row["weight"] is None else row["weight"],
                )
        return found

    async def entities(self, *, prefix: str | None, after: str | None, limit: int) -> Sequence[Any]:
        """Rows (name, type, description, degree) of entities with trusted support, in code point order."""
        return await self._database.fetch(
            _ENTITIES, self._ref.engine_name, self._ref.tenant_id, self.states, limit, prefix, after
        )

    async def existing(self, names: Sequence[str]) -> set[str]:
        """Which of these are names of entities, trusted or not."""
        return {row["id"] for row in await self._database.fetch(_EXISTING, self._ref.engine_name, list(names))}

    async def is_trusted(self, name: str) -> bool:
        """Whether anything that may be believed stands behind the entity."""
        return bool((await self.of_entities([name])).get(name))

    async def count_relations(self, names: Sequence[str]) -> int:
        """How many relations these entities have together, trusted or not."""
        rows = await self._database.fetch(_COUNT_RELATIONS, self._ref.engine_name, list(names))
        return int(rows[0]["n"])

    async def relations_of(self, name: str) -> Sequence[Any]:
        """Rows (src_id, tgt_id, properties) of the entity's relations, strongest first."""
        return await self._database.fetch(_RELATIONS, self._ref.engine_name, name)

    async def relation(self, one: str, other: str) -> Sequence[Any]:
        """The row (src_id, tgt_id, properties) of the relation between two entities, or none."""
        return await self._database.fetch(_RELATION, self._ref.engine_name, min(one, other), max(one, other))

    async def chunks_of(self, name: str) -> tuple[tuple[UUID, int], ...]:
        """The trusted chunks that speak of the entity, oldest first."""
        rows = await self._database.fetch(_CHUNKS, self._ref.engine_name, name, self._ref.tenant_id, self.states)
        return tuple((row["version_id"], row["ordinal"]) for row in rows)


def _said(rows: Sequence[Mapping[str, Any]], wanted: Collection[str]) -> dict[str, Said]:
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        key = row["name"] if row["target"] is None else relation_key(row["name"], row["target"])
        if key in wanted:
            grouped.setdefault(key, []).append(row)
    found = {}
    for key, mentions in grouped.items():
        types = Counter(row["type"] for row in mentions if row["type"])
        found[key] = Said(
            description=_join({row["description"]: None for row in mentions}, "\n"),
            keywords=_join({row["keywords"]: None for row in mentions if row["keywords"]}, ","),
            # The most frequent, of equals the first.
            type=max(types, key=lambda kind: types[kind]) if types else None,
            weight=len({(row["version_id"], row["chunk_ordinal"]) for row in mentions}),
        )
    return found


def _md5(name: str) -> str:
    return md5(name.encode(), usedforsecurity=False).hexdigest()


def _join(parts: dict[str, None], separator: str) -> str:
    return separator.join(list(parts)[:MAX_MENTIONS])
