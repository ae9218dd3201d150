"""What a merge leaves behind so that it can be taken back: the aliases and edits that it wrote over."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.retrieval.contract import Statement, WorkspaceRef
from app.retrieval.lightrag.edits import Edit, as_rows, from_rows
from app.retrieval.lightrag.names import entity_key
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.storage.aliases import AliasRow

# The aliases are read in the transaction, under its lock of the workspace, before the merge writes over them.
_KEEP = """
INSERT INTO entity_undo_records (tenant_id, workspace_id, change_id, sources, target, edits, merged_edits, aliases)
SELECT $1, $2, $3, $4::text[], $5, $6::jsonb, $7::jsonb, coalesce(jsonb_agg(jsonb_build_object(
         'key', encode(a.key, 'hex'), 'alias', a.alias, 'target', a.target, 'target_key', encode(a.target_key, 'hex'),
         'source', a.source, 'change_id', a.change_id)) FILTER (WHERE a.key IS NOT NULL), '[]')
  FROM (SELECT 1) one LEFT JOIN entity_aliases a ON a.tenant_id = $1 AND a.workspace_id = $2 AND a.key = ANY ($8::bytea[])"""

_READ = """
SELECT sources, target, aliases::text AS aliases, edits::text AS edits, merged_edits::text AS merged_edits
  FROM entity_undo_records WHERE tenant_id = $1 AND workspace_id = $2 AND change_id = $3"""

_FORGET = "DELETE FROM entity_undo_records WHERE tenant_id = $1 AND workspace_id = $2 AND change_id = $3"


@dataclass(frozen=True)
class MergeUndo:
    """A merge as it was made; `aliases` and `edits` are the rows that it wrote over."""

    sources: tuple[str, ...]
    target: str
    aliases: Mapping[bytes, AliasRow]
    edits: Sequence[Edit]
    merged_edits: Sequence[Edit]


def keeping_undo(
    ref: WorkspaceRef,
    change_id: UUID,
    sources: Sequence[str],
    target: str,
    before: Sequence[Edit],
    after: Sequence[Edit],
) -> Statement:
    """To be run before the merge's own statements on aliases."""
    keys = [entity_key(name) for name in (*sources, target)]
    rows = as_rows(before), as_rows(after)
    return Statement(_KEEP, (ref.tenant_id, ref.workspace_id, change_id, list(sources), target, *rows, keys))


async def find_undo(database: EngineDatabase, ref: WorkspaceRef, change_id: UUID) -> MergeUndo | None:
    rows = await database.fetch(_READ, ref.tenant_id, ref.workspace_id, change_id)
    if not rows:
        return None
    row = rows[0]
    aliases = [_alias(found) for found in json.loads(row["aliases"])]
    return MergeUndo(
        sources=tuple(row["sources"]),
        target=row["target"],
        aliases={alias.key: alias for alias in aliases},
        edits=from_rows(row["edits"]),
        merged_edits=from_rows(row["merged_edits"]),
    )


def forgetting_undo(ref: WorkspaceRef, change_id: UUID) -> Statement:
    return Statement(_FORGET, (ref.tenant_id, ref.workspace_id, change_id))


def _alias(row: Mapping[str, Any]) -> AliasRow:
    return AliasRow(
        bytes.fromhex(row["key"]), row["alias"], row["target"], bytes.fromhex(row["target_key"]), row["source"],
        UUID(row["change_id"]) if row["change_id"] else None,
    )  # fmt: skip
