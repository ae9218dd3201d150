"""Aliases of one workspace's entities: who means whom, and the statements that change it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from typing import Any
from uuid import UUID

from app.retrieval.contract import Statement, WorkspaceRef
from app.retrieval.entity_contract import AliasSource, EntityAlias
from app.retrieval.lightrag.names import entity_key
from app.retrieval.lightrag.reads import Reads
from app.retrieval.lightrag.storage.aliases import RESOLVE, AliasRow

_PUT = """
INSERT INTO entity_aliases (tenant_id, workspace_id, key, alias, target, target_key, source, change_id)
SELECT $1, $2, * FROM unnest($3::bytea[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::uuid[])
ON CONFLICT (tenant_id, workspace_id, key) DO UPDATE
SET alias = EXCLUDED.alias, target = EXCLUDED.target, target_key = EXCLUDED.target_key, source = EXCLUDED.source,
    change_id = EXCLUDED.change_id, created_at = now()"""

_REMOVE = """
DELETE FROM entity_aliases WHERE tenant_id = $1 AND workspace_id = $2 AND key = $3 AND source <> 'spelling'"""

_ROWS = """
SELECT key, alias, target, target_key, source, change_id FROM entity_aliases
 WHERE tenant_id = $1 AND workspace_id = $2 AND key = ANY ($3)"""
_DROP = "DELETE FROM entity_aliases WHERE tenant_id = $1 AND workspace_id = $2 AND key = ANY ($3)"

# Every alias and spelling that leads to one of these, over any number of merges.
_LEADING_TO = """
WITH RECURSIVE found AS (
  SELECT w.key FROM unnest($3::bytea[]) AS w (key)
  UNION
  SELECT a.key FROM found f JOIN entity_aliases a ON a.tenant_id = $1 AND a.workspace_id = $2 AND a.target_key = f.key
)
SELECT DISTINCT a.alias FROM found f JOIN entity_aliases a ON a.tenant_id = $1 AND a.workspace_id = $2 AND a.key = f.key"""

# Aliases that stay while what they were led over goes: each means at once what it meant in the end.
_PASSED = """
SELECT alias FROM entity_aliases
 WHERE tenant_id = $1 AND workspace_id = $2 AND target_key = ANY ($3) AND key <> ALL ($3) AND source <> 'spelling'"""
_SHORTEN = """
UPDATE entity_aliases a SET target = w.target, target_key = w.target_key
  FROM unnest($3::bytea[], $4::text[], $5::bytea[]) AS w (key, target, target_key)
 WHERE a.tenant_id = $1 AND a.workspace_id = $2 AND a.key = w.key"""

_FORGET_SPELLINGS = "DELETE FROM entity_aliases WHERE tenant_id = $1 AND workspace_id = $2 AND source = 'spelling'"

# What was said of the sources is said of the target from now on, but for what they said of each other.
_RENAME_MENTIONS = """
UPDATE mentions SET name = CASE WHEN name = ANY ($3) THEN $4 ELSE name END,
                    target = CASE WHEN target = ANY ($3) THEN $4 ELSE target END
 WHERE tenant_id = $1 AND workspace_id = $2 AND (name = ANY ($3) OR target = ANY ($3))"""
_DROP_SELF_MENTIONS = """
DELETE FROM mentions
 WHERE tenant_id = $1 AND workspace_id = $2 AND md5(name) = md5($3) AND name = $3 AND target = name"""

_LIST = """
SELECT alias, target, source, created_at FROM entity_aliases
 WHERE tenant_id = $1 AND workspace_id = $2 AND source <> 'spelling' AND ($3::text IS NULL OR alias COLLATE "C" > $3)
 ORDER BY alias COLLATE "C" LIMIT $4"""

_FIND = """
SELECT alias, target, source, created_at FROM entity_aliases
 WHERE tenant_id = $1 AND workspace_id = $2 AND key = $3 AND source <> 'spelling'"""


class AliasStore:
    """Reads run inside the workspace's fence; what they decide on is changed under the workspace's lease only."""

    def __init__(self, database: Reads, ref: WorkspaceRef) -> None:
        self._database = database
        self._ref = ref

    async def list(self, *, after: str | None, limit: int) -> Sequence[EntityAlias]:
        """By alias, in code point order, from the first after `after`."""
        return [EntityAlias(**row) for row in await self._fetch(_LIST, after, limit)]

    async def find(self, alias: str) -> EntityAlias | None:
        rows = await self._fetch(_FIND, entity_key(alias))
        return EntityAlias(**rows[0]) if rows else None

    async def meanings(self, names: Iterable[str]) -> dict[str, str]:
        """What each name leads to, for those that are an alias or another spelling of an entity's name."""
        return {name: row["target"] for name, row in (await self._resolve(names)).items()}

    async def meant_by_alias(self, names: Iterable[str]) -> dict[str, str]:
        """Like `meanings`, of aliases only."""
        return {name: row["target"] for name, row in (await self._resolve(names)).items() if row["is_alias"]}

    async def meant_by_spelling(self, names: Iterable[str]) -> dict[str, str]:
        """Like `meanings`, of other spellings only."""
        return {name: row["target"] for name, row in (await self._resolve(names)).items() if not row["is_alias"]}

    async def leading_to(self, names: Iterable[str]) -> Sequence[str]:
        """All aliases and spellings that mean one of these names."""
        return [row["alias"] for row in await self._fetch(_LEADING_TO, [entity_key(name) for name in names])]

    async def _resolve(self, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        keys = {name: entity_key(name) for name in names}
        found = {row["wanted"]: row for row in await self._fetch(RESOLVE, list(keys.values()))} if keys else {}
        return {name: found[key] for name, key in keys.items() if key in found}

    def merging(self, sources: Sequence[str], target: str, change_id: UUID) -> Iterator[Statement]:
        """The sources mean the target from now on, and the target means itself: the newest merge wins."""
        yield self.putting(sources, target, "merge", change_id)
        yield Statement(_RENAME_MENTIONS, (*self._scope, list(sources), target))
        yield Statement(_DROP_SELF_MENTIONS, (*self._scope, target))

    def putting(
        self, names: Sequence[str], target: str, source: AliasSource, change_id: UUID | None = None
    ) -> Statement:
        """Make `names` aliases of `target`; a merge's target becomes an end of its chain, a name of its own."""
        end = entity_key(target)
        rows = {entity_key(name): AliasRow(entity_key(name), name, target, end, source, change_id) for name in names}
        if source == "merge":
            rows[end] = AliasRow(end, target, target, end, "spelling", change_id)
        return self.restoring(list(rows.values()))

    def restoring(self, rows: Sequence[AliasRow]) -> Statement:
        """Write rows as they are."""
        columns = zip(*map(astuple, rows), strict=True) if rows else [()] * len(fields(AliasRow))
        return Statement(_PUT, (*self._scope, *map(list, columns)))

    def dropping(self, keys: Sequence[bytes]) -> Statement:
        """Remove rows of any source."""
        return Statement(_DROP, (*self._scope, list(keys)))

    async def passing_by(self, keys: Sequence[bytes]) -> Sequence[Statement]:
        """Before the rows with these keys go: what leads over one of them to another end goes there directly."""
        passed = [row["alias"] for row in await self._fetch(_PASSED, list(keys))]
        ends = {alias: end for alias, end in (await self.meanings(passed)).items() if entity_key(end) not in keys}
        if not ends:
            return []
        columns = map(entity_key, ends), ends.values(), map(entity_key, ends.values())
        return [Statement(_SHORTEN, (*self._scope, *map(list, columns)))]

    async def rows_of(self, names: Iterable[str]) -> dict[bytes, AliasRow]:
        """The rows of these very names, by key."""
        rows = await self._fetch(_ROWS, [entity_key(name) for name in names])
        return {row["key"]: AliasRow(**row) for row in rows}

    def removing(self, alias: str) -> Statement:
        return Statement(_REMOVE, (*self._scope, entity_key(alias)))

    def forgetting_spellings(self) -> Statement:
        """For a graph that goes as a whole; aliases outlive it."""
        return Statement(_FORGET_SPELLINGS, self._scope)

    @property
    def _scope(self) -> tuple[object, object]:
        return self._ref.tenant_id, self._ref.workspace_id

    async def _fetch(self, statement: str, *arguments: object) -> Sequence[dict[str, Any]]:
        return [dict(row) for row in await self._database.fetch(statement, *self._scope, *arguments)]
