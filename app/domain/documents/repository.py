"""Queries for documents, their newest versions and how far these are."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    Uuid,
    bindparam,
    column,
    func,
    insert,
    literal,
    select,
    table,
    text,
    tuple_,
    update,
)

from app.db.base import TenantRow
from app.db.models import Blob, Chunk, Document, IndexState, LiveVersion, Passage, Version, Workspace
from app.db.repository import TenantRepository
from app.db.session import TenantSession
from app.domain.documents.errors import DocumentNotFound
from app.domain.documents.records import FINAL_STATUSES, ChunkFailure, DocumentFilter, DocumentRecord, Status
from app.domain.ingestion.repository import bumping_corpus

# The view that defines a document's status and its newest version.
statuses = table(
    "document_statuses",
    column("tenant_id", Uuid()),
    column("document_id", Uuid()),
    column("version_id", Uuid()),
    column("status", Text()),
)
SHOWN_CHUNK_FAILURES = 20
# A statement has 32,767 parameters at most.
ROWS_A_STATEMENT = 1000


SAME_CONTENTS = text("""
SELECT DISTINCT ON (b.sha256) b.sha256, d.id
  FROM blobs b
  JOIN versions v ON v.tenant_id = b.tenant_id AND v.blob_id = b.id
  JOIN documents d ON d.tenant_id = v.tenant_id AND d.id = v.document_id AND d.deleting_at IS NULL
 WHERE b.tenant_id = :tenant_id AND b.workspace_id = :workspace_id AND b.sha256 = ANY (CAST(:digests AS bytea[]))
   AND d.workspace_id = :workspace_id
   AND NOT EXISTS (SELECT 1 FROM versions n
                    WHERE n.tenant_id = v.tenant_id AND n.document_id = v.document_id AND n.ordinal > v.ordinal)
 ORDER BY b.sha256, d.created_at
""")

# Built once: to build them for each request takes longer than to send them.
_RECORDS: "Select[Document, Version, Blob, str, bool]" = (
    select(
        Document, Version, Blob, statuses.c.status,
        (Version.index_profile_hash != Workspace.index_profile_hash).label("is_outdated"),
    )
    .join(statuses, (statuses.c.tenant_id == Document.tenant_id) & (statuses.c.document_id == Document.id))
    .join(Version, (Version.tenant_id == Document.tenant_id) & (Version.id == statuses.c.version_id))
    .join(Blob, (Blob.tenant_id == Version.tenant_id) & (Blob.id == Version.blob_id))
    .join(Workspace, (Workspace.tenant_id == Document.tenant_id) & (Workspace.id == Document.workspace_id))
    .where(Document.tenant_id == bindparam("tenant"), Document.workspace_id == bindparam("workspace"))
    # Workers change these rows in the meantime: what an earlier query of this session read must not shadow them.
    .execution_options(populate_existing=True)
)  # fmt: skip
_RECORD = _RECORDS.where(Document.id == bindparam("document"))
_STATES = (
    select(IndexState)
    .where(
        IndexState.tenant_id == bindparam("tenant"), IndexState.version_id.in_(bindparam("versions", expanding=True))
    )
    .order_by(IndexState.engine.desc())
    .execution_options(populate_existing=True)
)
_ANSWERING = (
    select(LiveVersion.document_id, LiveVersion.engine)
    .join(
        IndexState,
        (IndexState.tenant_id == LiveVersion.tenant_id)
        & (IndexState.version_id == LiveVersion.version_id)
        & (IndexState.engine == LiveVersion.engine),
    )
    .where(
        LiveVersion.tenant_id == bindparam("tenant"),
        LiveVersion.document_id.in_(bindparam("documents", expanding=True)),
        IndexState.state == "ready",
        IndexState.cleanliness == "clean",
    )
)
_CHUNK_FAILURES = (
    select(
        Chunk.ordinal, Chunk.error_code, Chunk.error_detail, func.min(Passage.page_start), func.max(Passage.page_end)
    )
    .outerjoin(
        Passage,
        (Passage.tenant_id == Chunk.tenant_id)
        & (Passage.version_id == Chunk.version_id)
        & Passage.ordinal.between(Chunk.first_passage, Chunk.last_passage),
    )
    .where(
        Chunk.tenant_id == bindparam("tenant"), Chunk.version_id == bindparam("version"), Chunk.state == "failed"
    )
    .group_by(Chunk.ordinal, Chunk.error_code, Chunk.error_detail)
    .order_by(Chunk.ordinal)
    .limit(SHOWN_CHUNK_FAILURES)
)  # fmt: skip


class DocumentRepository(TenantRepository):
    """Documents of one workspace."""

    def __init__(self, session: TenantSession, workspace_id: UUID) -> None:
        super().__init__(session)
        self.workspace_id = workspace_id

    async def get(self, document_id: UUID) -> DocumentRecord:
        """With the chunks that failed. Raises DocumentNotFound."""
        records = await self._load(_RECORD, document=document_id)
        if not records:
            raise DocumentNotFound.of(document_id)
        return replace(records[0], chunk_failures=await self._chunk_failures(records[0].version.id))

    async def get_many(self, document_ids: Iterable[UUID]) -> Sequence[DocumentRecord]:
        """Those there are, in the order given."""
        wanted = list(document_ids)
        found = await self._load(_RECORDS.where(Document.id.in_(wanted)))
        return sorted(found, key=lambda record: wanted.index(record.document.id))

    async def find_same_contents(self, digests: Iterable[bytes]) -> dict[bytes, UUID]:
        """By digest the oldest document whose newest version has an original of it, unless it is being deleted."""
        found = await self.session.execute(
            SAME_CONTENTS,
            {"tenant_id": self.session.tenant_id, "workspace_id": self.workspace_id, "digests": list(digests)},
        )
        return {row.sha256: row.id for row in found}

    async def lock(self, document_id: UUID) -> Document:
        """The row, kept from changing until the end of the transaction. Raises DocumentNotFound."""
        query = self.rows(Document, Document.workspace_id == self.workspace_id, Document.id == document_id)
        document = await self.session.scalar(query.with_for_update(key_share=True))
        if document is None:
            raise DocumentNotFound.of(document_id)
        return document

    async def status(self, document_id: UUID) -> Status:
        """Only the status, for those who wait for it to change. Raises DocumentNotFound."""
        query = (
            select(statuses.c.status)
            .join(Document, (Document.tenant_id == statuses.c.tenant_id) & (Document.id == statuses.c.document_id))
            .where(Document.workspace_id == self.workspace_id, Document.id == document_id, *self._mine())
        )
        found: Status | None = await self.session.scalar(query)
        if found is None:
            raise DocumentNotFound.of(document_id)
        return found

    async def list(
        self, wanted: DocumentFilter, *, after: tuple[datetime, UUID] | None, limit: int
    ) -> Sequence[DocumentRecord]:
        """Newest first, from the first after `after`."""
        query = _RECORDS.where(*_conditions(wanted))
        if after is not None:
            query = query.where(tuple_(Document.created_at, Document.id) < tuple_(*after))
        return await self._load(query.order_by(Document.created_at.desc(), Document.id.desc()).limit(limit))

    async def outdate(self, document_id: UUID) -> None:
        """For a new title: passages, concepts and terms of what is indexed still speak of the old one."""
        await self.session.execute(
            update(Version)
            .where(Version.tenant_id == self.session.tenant_id, Version.document_id == document_id)
            .values(index_profile_hash="")
        )

    async def renew_outdated(self, workspace: Workspace) -> Sequence[UUID]:
        """Give each document whose newest version has another profile than `workspace` a queued new version of the same
        original; the ids of these versions. Documents that are being worked on or deleted are left alone."""
        newest = (
            select(
                Version.tenant_id, Version.workspace_id, Version.document_id, Version.blob_id, Version.ordinal + 1,
                Version.media_type, literal(workspace.index_profile_hash),
            )
            .join(statuses, (statuses.c.tenant_id == Version.tenant_id) & (statuses.c.version_id == Version.id))
            .where(
                Version.tenant_id == self.session.tenant_id,
                Version.workspace_id == workspace.id,
                Version.index_profile_hash != workspace.index_profile_hash,
                statuses.c.status.in_(FINAL_STATUSES),
            )
        )  # fmt: skip
        columns = (
            "tenant_id", "workspace_id", "document_id", "blob_id", "ordinal", "media_type", "index_profile_hash",
        )  # fmt: skip
        renewed = (
            # The database makes the ids: a default of ours would be computed once, for all rows together.
            insert(Version).from_select(columns, newest, include_defaults=False).returning(Version.id)
        )
        version_ids = list(await self.session.scalars(renewed))
        if not version_ids:
            return []
        await self.session.execute(
            insert(IndexState),
            [
                {
                    "tenant_id": workspace.tenant_id,
                    "workspace_id": workspace.id,
                    "version_id": version_id,
                    "engine": engine,
                }
                for version_id in version_ids
                for engine in workspace.engines
            ],
        )
        return version_ids

    async def add_rows(self, model: type[TenantRow], rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows of one table, in one statement unless they are very many."""
        for start in range(0, len(rows), ROWS_A_STATEMENT):
            await self.session.execute(insert(model).values(rows[start : start + ROWS_A_STATEMENT]))

    async def bump_corpus_version(self) -> None:
        """Say that queries may see something else now; call it last in a transaction, for it locks the row."""
        await self.session.execute(bumping_corpus(self.session.tenant_id, self.workspace_id))

    def _mine(self) -> tuple[ColumnElement[bool], ...]:
        return (Document.tenant_id == self.session.tenant_id, Document.workspace_id == self.workspace_id)

    async def _load(
        self, query: "Select[Document, Version, Blob, str, bool]", **values: UUID
    ) -> Sequence[DocumentRecord]:
        mine = {"tenant": self.session.tenant_id, "workspace": self.workspace_id}
        found = (await self.session.execute(query, mine | values)).all()
        states = await self._states([row[1].id for row in found])
        answering = await self._answering([row[0].id for row in found])
        return [
            DocumentRecord(
                document=document,
                version=version,
                blob=blob,
                status=status,  # type: ignore[arg-type] # the view knows no other
                is_outdated=is_outdated,
                states=tuple(states[version.id]),
                answering=frozenset() if document.deleting_at else frozenset(answering[document.id]),
            )
            for document, version, blob, status, is_outdated in found
        ]

    async def _states(self, version_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[IndexState]]:
        states: defaultdict[UUID, list[IndexState]] = defaultdict(list)
        values = {"tenant": self.session.tenant_id, "versions": version_ids}
        for state in await self.session.scalars(_STATES, values):
            states[state.version_id].append(state)
        return states

    async def _answering(self, document_ids: Sequence[UUID]) -> Mapping[UUID, set[str]]:
        answering: defaultdict[UUID, set[str]] = defaultdict(set)
        values = {"tenant": self.session.tenant_id, "documents": document_ids}
        for document_id, engine in await self.session.execute(_ANSWERING, values):
            answering[document_id].add(engine)
        return answering

    async def _chunk_failures(self, version_id: UUID) -> tuple[ChunkFailure, ...]:
        values = {"tenant": self.session.tenant_id, "version": version_id}
        rows = (await self.session.execute(_CHUNK_FAILURES, values)).all()
        return tuple(ChunkFailure(row[0], row[1] or "", row[2] or "", row[3], row[4]) for row in rows)


def _conditions(wanted: DocumentFilter) -> Iterable[ColumnElement[bool]]:
    if wanted.statuses:
        yield statuses.c.status.in_(wanted.statuses)
    if wanted.created_after is not None:
        yield Document.created_at >= wanted.created_after
    if wanted.created_before is not None:
        yield Document.created_at < wanted.created_before
    if wanted.title:
        yield Document.title.icontains(wanted.title, autoescape=True)
    if wanted.filename:
        yield Document.filename.icontains(wanted.filename, autoescape=True)
    if wanted.metadata:
        yield Document.metadata_.contains(wanted.metadata)
