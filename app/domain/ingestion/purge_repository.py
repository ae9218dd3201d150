"""Queries of purges and of the sweeper: what is left of documents, versions and workspaces, and what stood still."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Select, delete, exists, func, select, text, update
from sqlalchemy.orm import aliased

from app.db.base import TenantId, WorkspaceId
from app.db.models import Blob, CorpusVersion, Document, EntityChange, IndexState, Version, Workspace
from app.db.repository import TenantRepository, same_row
from app.db.session import SystemSession
from app.retrieval.contract import WorkspaceRef

STALE_WORK = text("""
SELECT kind, tenant_id, workspace_id, subject_id FROM stale_work(:requeue_after, :max_rows)
UNION ALL
SELECT 'entity_change', tenant_id, workspace_id, change_id FROM stale_entity_changes(:requeue_after, :max_rows)
UNION ALL
SELECT 'duplicates', tenant_id, workspace_id, workspace_id FROM stale_duplicates(:requeue_after, :max_rows)
UNION ALL
SELECT 'themes', tenant_id, workspace_id, workspace_id FROM stale_themes(:requeue_after, :max_rows)
""")
UNOWNED_ENGINE_ROWS = text("SELECT tenant_id, workspace_id, version_id FROM unowned_engine_rows(:max_rows)")
REMOVE_QUERIES = text("""
DELETE FROM queries q
 WHERE q.tenant_id = :tenant_id AND q.id IN (
         SELECT o.id FROM queries o WHERE o.tenant_id = :tenant_id AND o.workspace_id = :workspace_id LIMIT :at_most)
RETURNING 1
""")
UNOWNED_GRAPH_ROWS = text("""
SELECT tenant_id, workspace_id, version_id, last_graph FROM unowned_graph_rows(:after, :max_graphs, :max_rows)""")
UNKNOWN_BLOB_KEYS = text("SELECT unknown_blob_keys(:keys)")


SUPERSEDED = text("""
SELECT v.id FROM versions v
 WHERE v.tenant_id = :tenant_id AND v.document_id = :document_id
   AND EXISTS (SELECT 1 FROM versions n
                WHERE n.tenant_id = v.tenant_id AND n.document_id = v.document_id AND n.ordinal > v.ordinal)
   AND NOT EXISTS (SELECT 1 FROM live_versions l WHERE l.tenant_id = v.tenant_id AND l.version_id = v.id)
   AND NOT EXISTS (SELECT 1 FROM index_states s WHERE s.tenant_id = v.tenant_id AND s.version_id = v.id
                                                  AND s.state IN ('queued', 'running'))
""")

# Every table that names documents or versions, but for those that tell of the past: what was used, what has happened.
NAMING_TABLES = text("""
SELECT c.relname, a.attname
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname IN ('version_id', 'document_id')
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
   AND NOT a.attisdropped AND c.relname NOT IN ('usage_events', 'events')
 ORDER BY 1, 2
""")

# What the audit log quotes of a document is all but this.
QUOTED = text("""
SELECT count(*) FROM audit_events
 WHERE tenant_id = :tenant AND kind = 'document' AND subject = :document
   AND (coalesce(before, '{}') || coalesce(after, '{}')) - ARRAY['id', 'workspace_id', 'deleting_at'] <> '{}'
""")
REDACT = text("SELECT redact_audit_log(:workspace, :document)")


class PurgeRepository(TenantRepository):
    async def traces(self, document_id: UUID, version_ids: Sequence[UUID]) -> dict[str, int]:
        """How many rows of which tables still name the document or its versions, read from the catalog, so that a new
        table is looked at too; empty if it is gone."""
        found = {}
        for table, column in (await self.session.execute(NAMING_TABLES)).all():
            names = [document_id] if column == "document_id" else list(version_ids)
            counted = text(f'SELECT count(*) FROM "{table}" WHERE tenant_id = :tenant AND "{column}" = ANY (:names)')  # noqa: S608
            rows = await self.session.scalar(counted, {"tenant": self.session.tenant_id, "names": names})
            if rows:
                found[f"{table}.{column}"] = int(rows)
        quoted = await self.session.scalar(QUOTED, {"tenant": self.session.tenant_id, "document": str(document_id)})
        return found | ({"audit_events": int(quoted)} if quoted else {})

    async def redact_audit_log(self, workspace_id: UUID, document_id: UUID | None = None) -> None:
        """Take out of the audit log what it quotes of a document that is being deleted, or of a workspace that is."""
        await self.session.execute(REDACT, {"workspace": workspace_id, "document": document_id})

    async def list_superseded(self, document_id: UUID) -> Sequence[UUID]:
        """Versions older than the newest that no engine answers from and nobody works on."""
        values = {"tenant_id": self.session.tenant_id, "document_id": document_id}
        return (await self.session.scalars(SUPERSEDED, values)).all()

    async def find_deleting(self, document_id: UUID) -> WorkspaceRef | None:
        """Where a document is that is being deleted; None if it is gone or was not asked to go."""
        query = (
            select(Document.workspace_id, Workspace.number)
            .join(Workspace, same_row(Document, Workspace, Document.workspace_id))
            .where(
                Document.tenant_id == self.session.tenant_id,
                Document.id == document_id,
                Document.deleting_at.is_not(None),
            )
        )
        return self._ref((await self.session.execute(query)).one_or_none())

    async def find_deleting_workspace(self, workspace_id: UUID) -> WorkspaceRef | None:
        return await self.find_workspace(workspace_id, status="deleting")

    async def touch_workspace(self, workspace_id: UUID) -> None:
        """Tell the sweeper that the workspace's removal goes on."""
        await self.session.execute(
            update(Workspace)
            .where(Workspace.tenant_id == self.session.tenant_id, Workspace.id == workspace_id)
            .values(updated_at=func.now())
        )

    async def touch_document(self, document_id: UUID) -> None:
        """Tell the sweeper that the document's removal was asked for just now."""
        await self.session.execute(
            update(Document)
            .where(
                Document.tenant_id == self.session.tenant_id,
                Document.id == document_id,
                Document.deleting_at.is_not(None),
            )
            .values(deleting_at=func.now())
        )

    async def touch_version(self, version_id: UUID) -> None:
        """Tell the sweeper that the removal of what engines hold of the version was asked for just now."""
        await self.session.execute(
            update(IndexState)
            .where(
                IndexState.tenant_id == self.session.tenant_id,
                IndexState.version_id == version_id,
                IndexState.state.not_in(("queued", "running")),
            )
            .values(changed_at=func.clock_timestamp())
        )

    async def touch_change(self, change_id: UUID) -> None:
        """Tell the sweeper that a change of entities was asked for just now."""
        await self.session.execute(
            update(EntityChange)
            .where(EntityChange.tenant_id == self.session.tenant_id, EntityChange.id == change_id)
            .values(sent_at=func.now())
        )

    async def touch_duplicates(self, workspace_id: UUID) -> None:
        """Tell the sweeper that a workspace's duplicates were asked to be merged just now."""
        await self.session.execute(
            update(CorpusVersion)
            .where(CorpusVersion.tenant_id == self.session.tenant_id, CorpusVersion.workspace_id == workspace_id)
            .values(duplicates_sent_at=func.now())
        )

    async def touch_themes(self, workspace_id: UUID) -> None:
        """Tell the sweeper that a workspace's themes were asked to be looked at just now."""
        await self.session.execute(
            update(CorpusVersion)
            .where(CorpusVersion.tenant_id == self.session.tenant_id, CorpusVersion.workspace_id == workspace_id)
            .values(themes_sent_at=func.now())
        )

    async def find_workspace(self, workspace_id: UUID, *, status: str = "active") -> WorkspaceRef | None:
        query = select(Workspace.id, Workspace.number).where(
            Workspace.tenant_id == self.session.tenant_id, Workspace.id == workspace_id, Workspace.status == status
        )
        return self._ref((await self.session.execute(query)).one_or_none())

    async def workspace_has_graph(self, workspace_id: UUID) -> bool:
        """Whether the graph engine may hold anything of the workspace, by its settings or by what was indexed."""
        query = self.rows(
            Workspace,
            Workspace.id == workspace_id,
            Workspace.engines.contains(["graph"])
            | exists().where(
                IndexState.tenant_id == Workspace.tenant_id,
                IndexState.workspace_id == Workspace.id,
                IndexState.engine == "graph",
            ),
        )
        return await self.session.scalar(query) is not None

    async def is_purging(self, version_id: UUID) -> bool:
        """Whether something untrusted may be in the graph engine and no attempt is open that would remove it."""
        query = self.rows(
            IndexState,
            IndexState.version_id == version_id,
            IndexState.cleanliness == "purging",
            IndexState.state.not_in(("queued", "running")),
        )
        return await self.session.scalar(query) is not None

    async def list_versions(self, document_id: UUID) -> Sequence[UUID]:
        return (await self.session.scalars(self._version_ids(Version.document_id == document_id))).all()

    async def list_documents(self, workspace_id: UUID) -> Sequence[UUID]:
        query = select(Document.id).where(
            Document.tenant_id == self.session.tenant_id, Document.workspace_id == workspace_id
        )
        return (await self.session.scalars(query)).all()

    async def list_blob_keys(self, document_id: UUID) -> Sequence[str]:
        query = (
            select(Blob.key)
            .join(Version, same_row(Version, Blob, Version.blob_id))
            .where(Version.tenant_id == self.session.tenant_id, Version.document_id == document_id)
            .distinct()
        )
        return (await self.session.scalars(query)).all()

    async def list_own_blob_keys(self, version_id: UUID) -> Sequence[str]:
        """The version's original, unless another version was made of the same one."""
        other = aliased(Version)
        query = (
            select(Blob.key)
            .join(Version, same_row(Version, Blob, Version.blob_id))
            .where(
                Version.tenant_id == self.session.tenant_id,
                Version.id == version_id,
                ~exists().where(
                    other.tenant_id == Version.tenant_id, other.blob_id == Version.blob_id, other.id != Version.id
                ),
            )
        )
        return (await self.session.scalars(query)).all()

    async def remove_version(self, version_id: UUID) -> None:
        """With its states, pointers, chunks and passages. The lazy index must have let go of it before."""
        await self.session.execute(
            delete(Version).where(Version.tenant_id == self.session.tenant_id, Version.id == version_id)
        )

    async def remove_blobs(self, keys: Sequence[str]) -> None:
        """Rows of originals that no version is made of any more."""
        await self.session.execute(delete(Blob).where(Blob.tenant_id == self.session.tenant_id, Blob.key.in_(keys)))

    async def remove_document(self, document_id: UUID) -> None:
        """The row itself, once its versions are gone."""
        await self.session.execute(
            delete(Document).where(Document.tenant_id == self.session.tenant_id, Document.id == document_id)
        )

    async def remove_queries(self, workspace_id: UUID, at_most: int) -> int:
        """Logged queries, with their evidence and feedback; how many."""
        values = {"tenant_id": self.session.tenant_id, "workspace_id": workspace_id, "at_most": at_most}
        return len((await self.session.execute(REMOVE_QUERIES, values)).all())

    async def remove_workspace(self, workspace_id: UUID) -> None:
        await self.session.execute(
            delete(Workspace).where(Workspace.tenant_id == self.session.tenant_id, Workspace.id == workspace_id)
        )

    def _version_ids(self, *conditions: Any) -> Select[Any]:
        return (
            select(Version.id).where(Version.tenant_id == self.session.tenant_id, *conditions).order_by(Version.ordinal)
        )

    def _ref(self, row: Any) -> WorkspaceRef | None:
        if row is None:
            return None
        return WorkspaceRef(TenantId(self.session.tenant_id), WorkspaceId(row[0]), row[1])


class StaleWork:
    """What stood still, over all tenants, as ids only."""

    def __init__(self, session: SystemSession) -> None:
        self._session = session

    async def list(self, requeue_after: timedelta, max_rows: int) -> Sequence[Any]:
        """Rows (kind, tenant_id, workspace_id, subject_id), at most `max_rows` of each kind, the most urgent first."""
        return (await self._session.execute(STALE_WORK, {"requeue_after": requeue_after, "max_rows": max_rows})).all()

    async def unowned_engine_rows(self, max_rows: int) -> Sequence[Any]:
        """Rows (tenant_id, workspace_id, version_id) of what the graph engine holds of versions that are not there.

        Without a tenant and a version where the whole workspace is gone. Reads all of the engine's tables.
        """
        return (await self._session.execute(UNOWNED_ENGINE_ROWS, {"max_rows": max_rows})).all()

    async def unowned_graph_rows(self, after: str, max_graphs: int, max_rows: int) -> tuple[Sequence[Any], str | None]:
        """The same of the next graphs in Apache AGE, and the last one that was read; None after the last of all."""
        asked = {"after": after, "max_graphs": max_graphs, "max_rows": max_rows}
        rows = (await self._session.execute(UNOWNED_GRAPH_ROWS, asked)).all()
        found = [row for row in rows if row.last_graph is None]
        return found, next((row.last_graph for row in rows if row.last_graph is not None), None)

    async def unknown_blob_keys(self, keys: Sequence[str]) -> Sequence[str]:
        """Those of `keys` that no tenant has a row for."""
        return (await self._session.scalars(UNKNOWN_BLOB_KEYS, {"keys": list(keys)})).all()
