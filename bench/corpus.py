"""Puts an evaluation set into a workspace of its own, through the product's text road, stores and lazy index.

Files, uploads and workers are left out: the sets are plain text, and thousands of one-passage documents are no test of
those.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from sqlalchemy import text
from sqlalchemy.orm import DeclarativeBase

from app.db.base import TenantId, WorkspaceId
from app.db.models import Blob, CorpusVersion, Document, IndexState, LiveVersion, Tenant, Version, Workspace
from app.db.session import Database, TenantSession
from app.db.vector_tables import vector_suffix
from app.providers.contract import EmbeddingModel
from app.retrieval.contract import EngineWorkspace, IndexProfile, PassageEvidence, WorkspaceRef
from app.retrieval.lazy.index import ConceptIndex
from app.retrieval.store.passages import StoredVersion, content_hash, indexed_text, insert_passages
from app.retrieval.store.vectors import PassageVectors
from app.text.document import Block, SourceText
from app.text.passages import PassageDraft, split_passages
from bench.datasets import EvaluationSet, SourceDocument

_DOCUMENTS_PER_TRANSACTION = 100
# A product passage stands for each passage of the set with which it shares this part of the shorter of the two.
_SHARED_PART = 0.5
_ANALYSED = (
    "documents", "index_states", "live_versions", "passages", "lazy_versions", "lazy_passages", "concept_postings",
    "term_postings",
)  # fmt: skip


@dataclass
class IndexedSet:
    """A workspace, and which passages of the set each of its documents holds."""

    workspace: EngineWorkspace
    blob_id: UUID
    sources: dict[UUID, SourceDocument] = field(default_factory=dict)
    texts: dict[int, tuple[str, str]] = field(default_factory=dict)  # title and text of each passage

    def ids(self, passages: Sequence[PassageEvidence]) -> list[str]:
        """The passages of the set that these stand for, in the same order, none twice."""
        found: dict[str, None] = {}
        for passage in passages:
            for source in self.sources[passage.document_id].passages:
                shared = min(passage.char_end, source.end) - max(passage.char_start, source.start)
                shorter = min(passage.char_end - passage.char_start, source.end - source.start)
                if shared >= _SHARED_PART * shorter:
                    found[source.id] = None
        return list(found)


@dataclass(frozen=True)
class Prepared:
    """A document that is cut into passages but not stored."""

    source: SourceDocument
    document: Document
    version: Version
    drafts: list[PassageDraft]

    @property
    def texts(self) -> list[str]:
        """What is embedded, passage by passage."""
        return [indexed_text(self.source.title, draft.heading_path, draft.text) for draft in self.drafts]


async def index_set(
    owner: Database, database: Database, embedding: EmbeddingModel, evaluation: EvaluationSet
) -> IndexedSet:
    """A new tenant with one workspace that holds all documents of the set."""
    indexed = await open_workspace(owner, database, embedding)
    await add_documents(database, indexed, evaluation.documents)
    await analyse(owner)
    return indexed


async def open_workspace(owner: Database, database: Database, embedding: EmbeddingModel) -> IndexedSet:
    """A new tenant with one empty workspace."""
    suffix = vector_suffix(embedding.profile.name, embedding.dimension)
    tenant_id = await _add_tenant(owner)
    async with database.tenant(tenant_id) as session:
        ref, blob_id = await _add_workspace(session, tenant_id, embedding.profile.id)
    return IndexedSet(EngineWorkspace(ref, IndexProfile(), embedding, suffix, None), blob_id)


async def add_documents(
    database: Database,
    indexed: IndexedSet,
    documents: Sequence[SourceDocument],
    *,
    per_transaction: int = _DOCUMENTS_PER_TRANSACTION,
) -> list[Document]:
    """Index documents in order, as an upload does it but for the files; their rows, without a session."""
    return await write_documents(database, indexed, prepare(indexed, documents), per_transaction=per_transaction)


def prepare(indexed: IndexedSet, documents: Sequence[SourceDocument]) -> list[Prepared]:
    """Cut documents into passages, and make the rows that these hang on."""
    return [_prepare(indexed.workspace.ref, indexed.blob_id, source) for source in documents]


async def add_rows(database: Database, indexed: IndexedSet, prepared: Sequence[Prepared]) -> None:
    """What an upload leaves of documents, and that they are ready; for `write_documents` with `has_rows`."""
    for start in range(0, len(prepared), _DOCUMENTS_PER_TRANSACTION):
        async with database.tenant(indexed.workspace.ref.tenant_id) as session:
            await _add_rows(session, indexed.workspace.ref, prepared[start : start + _DOCUMENTS_PER_TRANSACTION])


async def write_documents(
    database: Database,
    indexed: IndexedSet,
    prepared: Sequence[Prepared],
    *,
    per_transaction: int,
    has_rows: bool = False,
) -> list[Document]:
    """Embed documents and write them with their index, so many in one transaction."""
    for start in range(0, len(prepared), per_transaction):
        await _index(database, indexed, prepared[start : start + per_transaction], has_rows=has_rows)
    return [item.document for item in prepared]


async def analyse(owner: Database) -> None:
    """What autovacuum would do a minute later."""
    async with owner.system() as session:
        for table in _ANALYSED:
            await session.execute(text(f"ANALYZE {table}"))


async def _add_tenant(owner: Database) -> TenantId:
    async with owner.system() as session:
        tenant = Tenant(id=uuid4(), name=f"bench {secrets.token_hex(6)}")
        session.add(tenant)
    return TenantId(tenant.id)


async def _add_workspace(session: TenantSession, tenant_id: TenantId, profile_id: UUID) -> tuple[WorkspaceRef, UUID]:
    workspace = Workspace(
        id=uuid4(),
        tenant_id=tenant_id,
        name="bench",
        engines=["lazy"],
        default_mode="lazy",
        settings={},
        index_profile_hash="bench",
        embedding_profile_id=profile_id,
    )
    await _add(session, workspace)
    await session.refresh(workspace)
    scope = {"tenant_id": tenant_id, "workspace_id": workspace.id}
    blob = Blob(id=uuid4(), key=secrets.token_hex(12), sha256=b"", size_bytes=0, **scope)
    await _add(session, CorpusVersion(**scope), blob)
    return WorkspaceRef(tenant_id, WorkspaceId(workspace.id), workspace.number), blob.id


def _prepare(ref: WorkspaceRef, blob_id: UUID, source: SourceDocument) -> Prepared:
    scope = {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id}
    document = Document(id=uuid4(), title=source.title, filename="", **scope)
    version = Version(
        id=uuid4(),
        document_id=document.id,
        blob_id=blob_id,
        ordinal=1,
        media_type="text/plain",
        index_profile_hash="bench",
        **scope,
    )
    return Prepared(source, document, version, split_passages(_source_text(source)))


def _source_text(source: SourceDocument) -> SourceText:
    """One paragraph per blank line, as the plain text parser gives it."""
    blocks = []
    position = 0
    for paragraph in source.text.split("\n\n"):
        blocks.append(Block("paragraph", paragraph, None, position, position + len(paragraph), ()))
        position += len(paragraph) + 2
    return SourceText(source.text, tuple(blocks), None, source.title)


async def _index(database: Database, indexed: IndexedSet, batch: Sequence[Prepared], *, has_rows: bool) -> None:
    workspace = indexed.workspace
    texts = [text for item in batch for text in item.texts]
    embedded = iter(zip(texts, await workspace.embedding.embed(texts, role="document"), strict=True))
    vectors, index = PassageVectors(workspace.vector_suffix), ConceptIndex()
    async with database.tenant(workspace.ref.tenant_id) as session:
        if not has_rows:
            await _add_rows(session, workspace.ref, batch)
        for item in batch:
            version = StoredVersion(workspace.ref, item.document.id, item.version.id)
            rows = await insert_passages(session, version, item.source.title, item.drafts)
            by_passage = {
                row.id: (content_hash(found), vector) for row, (found, vector) in zip(rows, embedded, strict=False)
            }
            await vectors.write(session, workspace.ref, version.version_id, by_passage)
            await index.add(session, workspace.ref, item.source.title, rows)
            indexed.sources[item.document.id] = item.source
            indexed.texts.update({row.id: (item.source.title, row.text) for row in rows})


async def _add_rows(session: TenantSession, ref: WorkspaceRef, batch: Sequence[Prepared]) -> None:
    await _add(session, *(item.document for item in batch))
    await _add(session, *(item.version for item in batch))
    await _add(session, *(row for item in batch for row in _readiness(ref, item)))


def _readiness(ref: WorkspaceRef, item: Prepared) -> tuple[DeclarativeBase, DeclarativeBase]:
    where = {
        "tenant_id": ref.tenant_id,
        "workspace_id": ref.workspace_id,
        "version_id": item.version.id,
        "engine": "lazy",
    }
    return IndexState(state="ready", **where), LiveVersion(document_id=item.document.id, **where)


async def _add(session: TenantSession, *rows: DeclarativeBase) -> None:
    session.add_all(rows)
    await session.flush()
