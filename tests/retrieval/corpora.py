"""Puts documents into a workspace the way ingestion does, through the stores and the lazy index, without its workers."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

from sqlalchemy import select, text

from app.db.base import TenantId, WorkspaceId
from app.db.models import Blob, Document, IndexState, LiveVersion, ModelProfile, Version, Workspace
from app.db.session import Database, TenantSession
from app.providers.contract import EmbeddingModel
from app.providers.contract import ModelProfile as Profile
from app.providers.offline.embeddings import OfflineEmbeddings
from app.retrieval.contract import EngineWorkspace, IndexProfile, PassageRow, WorkspaceRef
from app.retrieval.lazy.index import ConceptIndex
from app.retrieval.store.passages import StoredVersion, content_hash, indexed_text, insert_passages
from app.retrieval.store.vectors import PassageVectors
from app.text.document import Block, SourceText
from app.text.passages import PassageDraft, split_passages
from tests.factories import OFFLINE_EMBEDDING, Tenancy


@dataclass(frozen=True)
class Stored:
    """A document with one version and its passages."""

    document_id: UUID
    version_id: UUID
    passages: tuple[PassageRow, ...]

    @property
    def passage_ids(self) -> list[int]:
        return [passage.id for passage in self.passages]


@dataclass
class Corpus:
    """A workspace of a test, and what it holds."""

    database: Database
    workspace: EngineWorkspace
    index: ConceptIndex = field(default_factory=ConceptIndex)

    @classmethod
    async def create(cls, tenancy: Tenancy) -> "Corpus":
        workspace_id = await tenancy.add_workspace()
        async with tenancy.database.tenant(tenancy.tenant_id) as session:
            number = await session.scalar(select(Workspace.number).where(Workspace.id == workspace_id))
            profile = await session.scalar(select(ModelProfile).where(ModelProfile.name == OFFLINE_EMBEDDING))
        assert number is not None
        assert profile is not None
        assert profile.table_suffix is not None
        ref = WorkspaceRef(TenantId(tenancy.tenant_id), WorkspaceId(workspace_id), number)
        embedding: EmbeddingModel = OfflineEmbeddings(
            Profile(id=profile.id, name=profile.name, role="embedding", provider="offline", model=profile.model)
        )
        return cls(tenancy.database, EngineWorkspace(ref, IndexProfile(), embedding, profile.table_suffix, None))

    @property
    def ref(self) -> WorkspaceRef:
        return self.workspace.ref

    @property
    def vectors(self) -> PassageVectors:
        return PassageVectors(self.workspace.vector_suffix)

    async def add(
        self, title: str, content: str, *, heading_path: tuple[str, ...] = (), state: str = "ready"
    ) -> Stored:
        """A document of paragraphs (separated by blank lines), indexed in one transaction."""
        drafts = paragraphs(content, heading_path)
        embedded = [indexed_text(title, draft.heading_path, draft.text) for draft in drafts]
        vectors = await self.workspace.embedding.embed(embedded, role="document")
        async with self.database.tenant(self.ref.tenant_id) as session:
            version = await self.add_version(session, title, state=state)
            rows = await insert_passages(session, version, title, drafts)
            by_passage = {
                row.id: (content_hash(indexed), vector)
                for row, indexed, vector in zip(rows, embedded, vectors, strict=True)
            }
            await self.vectors.write(session, self.ref, version.version_id, by_passage)
            await self.index.add(session, self.ref, title, rows)
            await self._bump(session)
        return Stored(version.document_id, version.version_id, tuple(rows))

    async def add_version(self, session: TenantSession, title: str, *, state: str = "ready") -> StoredVersion:
        """The rows that passages hang on: a document with one live version."""
        tenant_id, workspace_id = self.ref.tenant_id, self.ref.workspace_id
        blob = Blob(
            id=uuid4(),
            tenant_id=tenant_id,
            workspace_id=workspace_id,
            key=secrets.token_hex(8),
            sha256=b"",
            size_bytes=0,
        )
        document = Document(id=uuid4(), tenant_id=tenant_id, workspace_id=workspace_id, title=title, filename="a.txt")
        session.add_all([blob, document])
        await session.flush()
        version = Version(
            id=uuid4(),
            tenant_id=tenant_id,
            workspace_id=workspace_id,
            document_id=document.id,
            blob_id=blob.id,
            ordinal=1,
            media_type="text/plain",
            index_profile_hash="test",
        )
        session.add(version)
        await session.flush()
        where = {"tenant_id": tenant_id, "workspace_id": workspace_id, "version_id": version.id, "engine": "lazy"}
        session.add_all([IndexState(state=state, **where), LiveVersion(document_id=document.id, **where)])
        await session.flush()
        return StoredVersion(self.ref, document.id, version.id)

    async def remove(self, stored: Stored) -> None:
        """Take a document out again, index first."""
        async with self.database.tenant(self.ref.tenant_id) as session:
            await self.index.remove(session, self.ref, stored.version_id)
            await session.execute(text("DELETE FROM documents WHERE id = :id"), {"id": stored.document_id})
            await self._bump(session)

    async def hide(self, stored: Stored) -> None:
        """Begin to delete a document: no answer may use it any more, though its rows are there yet."""
        async with self.database.tenant(self.ref.tenant_id) as session:
            statement = text("UPDATE documents SET deleting_at = now() WHERE id = :id")
            await session.execute(statement, {"id": stored.document_id})
            await self._bump(session)

    async def opened(self) -> EngineWorkspace:
        """The workspace with its corpus version of now, as a request opens it."""
        statement = text("SELECT version FROM corpus_versions WHERE workspace_id = :id")
        async with self.database.tenant(self.ref.tenant_id) as session:
            version = await session.scalar(statement, {"id": self.ref.workspace_id})
        return replace(self.workspace, corpus_version=version)

    async def change(self, statement: str, **parameters: object) -> None:
        """Run one statement as the tenant."""
        async with self.database.tenant(self.ref.tenant_id) as session:
            await session.execute(text(statement), parameters)

    async def _bump(self, session: TenantSession) -> None:
        statement = text("UPDATE corpus_versions SET version = version + 1 WHERE workspace_id = :id")
        await session.execute(statement, {"id": self.ref.workspace_id})


def paragraphs(content: str, heading_path: tuple[str, ...] = ()) -> list[PassageDraft]:
    """The passages of a text in which a blank line ends a paragraph."""
    blocks: list[Block] = []
    position = 0
    for part in content.split("\n\n"):
        blocks.append(Block("paragraph", part, None, position, position + len(part), heading_path))
        position += len(part) + 2
    return split_passages(SourceText(content, tuple(blocks), None, None))


def drafts(texts: Sequence[str]) -> list[PassageDraft]:
    """One passage per text, whatever its size."""
    return [PassageDraft(place, found, 1, None, None, 0, len(found), (), 1) for place, found in enumerate(texts)]
