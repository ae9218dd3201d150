"""Statements on the history of entities, for the transaction of the change itself."""

import json
from collections.abc import Mapping, Sequence
from uuid import UUID

from app.errors import Conflict
from app.retrieval.contract import Statement, WorkspaceRef
from app.retrieval.entity_contract import ChangeNotFound, ChangeRecord
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.storage.aliases import Splits

# ruff: noqa: S608 - put together from constants

# The history outlives what it tells of, so it holds whole names.
_WHOLE = """
ARRAY(SELECT coalesce(l.whole, u.name)
        FROM unnest({names}::text[]) WITH ORDINALITY u (name, place)
        LEFT JOIN entity_names l ON l.tenant_id = $1 AND l.workspace_id = $2 AND l.name = u.name
       ORDER BY u.place)"""

_RECORD = f"""
INSERT INTO entity_changes (tenant_id, workspace_id, id, kind, state, names, request, actor, request_key, undoes, finished_at)
VALUES ($1, $2, $3, $4, $5, {_WHOLE.format(names="$6")}, $7::jsonb, $8, $9, $10, CASE WHEN $5 = 'done' THEN now() END)
ON CONFLICT (tenant_id, id) DO UPDATE
SET state = EXCLUDED.state, names = EXCLUDED.names, finished_at = EXCLUDED.finished_at, sent_at = now()
WHERE entity_changes.state = 'writing'"""

_PROCEED = f"""
UPDATE entity_changes SET state = $4, names = {_WHOLE.format(names="$5")}, sent_at = now(),
                          finished_at = CASE WHEN $4 = 'done' THEN now() END
 WHERE tenant_id = $1 AND workspace_id = $2 AND id = $3 AND state IN ('queued', 'writing')"""

# A queued change waits to be made again; of another one the caller's key is free again.
_PUT_BACK = """
UPDATE entity_changes
   SET state = CASE WHEN attempts > 0 THEN 'queued' ELSE 'failed' END, sent_at = now(),
       error_code = CASE WHEN attempts = 0 THEN 'interrupted' END,
       error_detail = CASE WHEN attempts = 0 THEN 'What made the change was stopped; what it had written was put back.' END,
       request_key = CASE WHEN attempts > 0 THEN request_key END,
       finished_at = CASE WHEN attempts = 0 THEN now() END
 WHERE tenant_id = $1 AND workspace_id = $2 AND id = $3 AND state = 'writing'"""

_MARK_UNDONE = """
UPDATE entity_changes SET state = 'undone'
 WHERE tenant_id = $1 AND workspace_id = $2 AND id = $3 AND state = 'done'"""

_ORDER = "SELECT id FROM lightrag_doc_status WHERE workspace = $1 AND id = ANY ($2) ORDER BY created_at, id"

_SPLIT = """
INSERT INTO entity_splits (tenant_id, workspace_id, key, version_id, chunk_ordinal, target, change_id)
SELECT $1, $2, $3, u.version_id, u.ordinal, u.target, $4
  FROM unnest($5::uuid[], $6::int[], $7::text[]) AS u (version_id, ordinal, target)
ON CONFLICT (tenant_id, workspace_id, key, version_id, chunk_ordinal) DO UPDATE
SET target = EXCLUDED.target, change_id = EXCLUDED.change_id"""

_SPLITS_OF = """
SELECT key, version_id, chunk_ordinal, target FROM entity_splits
 WHERE tenant_id = $1 AND workspace_id = $2 AND change_id = $3"""
_UNSPLIT = "DELETE FROM entity_splits WHERE tenant_id = $1 AND workspace_id = $2 AND change_id = $3"


class ChangeFinished(Conflict):
    """Another run of the same change was faster, or it was put back; nothing is written twice."""

    code = "change_finished"
    title = "The change is finished already"


def announcing(
    ref: WorkspaceRef, kind: str, record: ChangeRecord, names: list[str], *, undoes: UUID | None = None
) -> list[Statement]:
    """The statement that writes into the history that the change is being written."""
    return [_proceeding(ref, kind, record, names, "writing", undoes)]


def recording(
    ref: WorkspaceRef, kind: str, record: ChangeRecord | None, names: list[str], *, undoes: UUID | None = None
) -> list[Statement]:
    """The statement that writes the change into the history, or finishes it there."""
    return [_proceeding(ref, kind, record or ChangeRecord(), names, "done", undoes)]


def _proceeding(
    ref: WorkspaceRef, kind: str, record: ChangeRecord, names: list[str], state: str, undoes: UUID | None
) -> Statement:
    scope = ref.tenant_id, ref.workspace_id, record.id
    finished = ChangeFinished("The change was carried out meanwhile.")
    if record.is_queued:
        return Statement(_PROCEED, (*scope, state, names), otherwise=finished)
    request = json.dumps(dict(record.request))
    arguments = (*scope, kind, state, names, request, record.actor, record.request_key, undoes)
    return Statement(_RECORD, arguments, otherwise=finished)


def putting_back(ref: WorkspaceRef, change_id: UUID) -> Statement:
    """The change that was being written is not begun any more."""
    finished = ChangeFinished("The change is not being written any more.")
    return Statement(_PUT_BACK, (ref.tenant_id, ref.workspace_id, change_id), otherwise=finished)


def marking_undone(ref: WorkspaceRef, change_id: UUID) -> Statement:
    done = ChangeNotFound("The change was undone meanwhile.")
    return Statement(_MARK_UNDONE, (ref.tenant_id, ref.workspace_id, change_id), otherwise=done)


async def order_of_inserts(database: EngineDatabase, workspace: str, versions: Sequence[str]) -> Mapping[str, int]:
    """The place of each version among these, by when it came into the graph."""
    rows = await database.fetch(_ORDER, workspace, list(versions))
    return {row["id"]: n for n, row in enumerate(rows)}


def splitting(ref: WorkspaceRef, key: bytes, change_id: UUID, parts: Mapping[tuple[UUID, int], str]) -> Statement:
    """From now on the name with this key means something of its own in these chunks."""
    columns = [place[0] for place in parts], [place[1] for place in parts], list(parts.values())
    return Statement(_SPLIT, (ref.tenant_id, ref.workspace_id, key, change_id, *columns))


def unsplitting(ref: WorkspaceRef, change_id: UUID) -> Statement:
    return Statement(_UNSPLIT, (ref.tenant_id, ref.workspace_id, change_id))


async def splits_of(database: EngineDatabase, ref: WorkspaceRef, change_id: UUID) -> Splits:
    """What one change made names mean in single chunks."""
    rows = await database.fetch(_SPLITS_OF, ref.tenant_id, ref.workspace_id, change_id)
    return {(f"{row['version_id']}-chunk-{row['chunk_ordinal']:03d}", row["key"]): row["target"] for row in rows}
