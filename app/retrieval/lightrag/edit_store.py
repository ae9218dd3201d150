"""Where edits of entities and relations are kept."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.retrieval.contract import Statement, WorkspaceRef
from app.retrieval.lightrag.edits import Edit
from app.retrieval.lightrag.pool import EngineDatabase

_LIST = """
SELECT name, target, fields::text AS fields, is_created FROM entity_edits
 WHERE tenant_id = $1 AND workspace_id = $2 AND ($3::text[] IS NULL OR name = ANY ($3) OR target = ANY ($3))
 ORDER BY target IS NOT NULL, name, target"""

_PUT = """
INSERT INTO entity_edits (tenant_id, workspace_id, key, name, target, fields, is_created)
SELECT $1, $2, u.key, u.name, u.target, u.fields::jsonb, u.is_created
  FROM unnest($3::bytea[], $4::text[], $5::text[], $6::text[], $7::bool[]) AS u (key, name, target, fields, is_created)
ON CONFLICT (tenant_id, workspace_id, key) DO UPDATE
SET fields = EXCLUDED.fields, is_created = EXCLUDED.is_created, updated_at = now()
WHERE entity_edits.fields <> EXCLUDED.fields OR entity_edits.is_created <> EXCLUDED.is_created"""

_DELETE = "DELETE FROM entity_edits WHERE tenant_id = $1 AND workspace_id = $2 AND key = ANY ($3)"

_CLEAR = (
    "DELETE FROM entity_edits WHERE tenant_id = $1 AND workspace_id = $2",
    "DELETE FROM entity_undo_records WHERE tenant_id = $1 AND workspace_id = $2",
)


class EditStore:
    """The edits of one workspace."""

    def __init__(self, database: EngineDatabase, ref: WorkspaceRef) -> None:
        self._database = database
        self._scope = ref.tenant_id, ref.workspace_id

    async def touching(self, names: Iterable[str] | None = None) -> list[Edit]:
        """Edits of these entities and their relations, or all; entities first."""
        wanted = None if names is None else list(names)
        rows = await self._database.fetch(_LIST, *self._scope, wanted)
        return [Edit(row["name"], row["target"], json.loads(row["fields"]), row["is_created"]) for row in rows]

    def putting(self, edits: Sequence[Edit]) -> list[Statement]:
        rows = [(edit.key, edit.name, edit.target, _json(edit.fields), edit.is_created) for edit in edits]
        columns = [list(column) for column in zip(*rows, strict=True)]
        return [Statement(_PUT, (*self._scope, *columns))] if rows else []

    def deleting(self, edits: Iterable[Edit]) -> list[Statement]:
        keys = [edit.key for edit in edits]
        return [Statement(_DELETE, (*self._scope, keys))] if keys else []

    def clearing(self) -> list[Statement]:
        """For a graph that goes as a whole: nothing can be edited, or undone, any more."""
        return [Statement(statement, self._scope) for statement in _CLEAR]


def _json(fields: Mapping[str, Any]) -> str:
    return json.dumps(dict(fields), sort_keys=True)
