"""Statements on the history of entities, for the transaction of the change itself."""

import json
from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from app.errors import Conflict
from app.retrieval.contract import Statement, WorkspaceRef
from app.retrieval.entity_contract import ChangeNotFound, ChangeRecord
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.storage.aliases import Splits

_RECORD = """
INSERT INTO entity_changes (tenant_id, workspace_id, id, kind, state, names, request, actor, request_key, undoes, finished_at)
VALUES ($1, $2, $3, $4, 'done', $5::text[], $6::jsonb, $7, $8, $9, now())"""

_FINISH = """
UPDATE entity_changes SET state = 'done', names = $4::text[], finished_at = now()
 WHERE tenant_id = $1 AND workspace_id = $2 AND id = $3 AND state = 'queued'"""

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
    """Another run of the same change was faster; nothing is written twice."""

    code = "change_finished"
    title = "The change is finished already"


def recording(
    ref: WorkspaceRef, kind: str, record: ChangeRecord | None, names: list[str], *, undoes: UUID | None = None
) -> Iterator[Statement]:
    """The statement that writes the change into the history, or finishes it there."""
    record = record or ChangeRecord()
    scope = ref.tenant_id, ref.workspace_id, record.id
    if record.is_queued:
        done = ChangeFinished("The change was carried out meanwhile.")
        yield Statement(_FINISH, (*scope, names), otherwise=done)
    else:
        request = json.dumps(dict(record.request))
        yield Statement(_RECORD, (*scope, kind, names, request, record.actor, record.request_key, undoes))


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
