"""Queries about one document's part in a query."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select

from app.db.models import Document, LiveVersion, Passage, Version
from app.db.repository import TenantRepository
from app.domain.documents.errors import DocumentNotFound
from app.retrieval.contract import Engine


@dataclass(frozen=True)
class DocumentPassages:
    """A version, whether the engine answers from it, and its passages (id, ordinal) in order."""

    version_id: UUID
    is_live: bool
    passages: tuple[tuple[int, int], ...]


class ExplainedDocuments(TenantRepository):
    async def get(self, workspace_id: UUID, document_id: UUID, engine: Engine) -> DocumentPassages:
        """Of the version that the engine answers from, else of the newest one. Raises DocumentNotFound."""
        tenant_id = self.session.tenant_id
        live = await self.session.scalar(
            select(LiveVersion.version_id).where(
                LiveVersion.tenant_id == tenant_id,
                LiveVersion.workspace_id == workspace_id,
                LiveVersion.document_id == document_id,
                LiveVersion.engine == engine,
            )
        )
        version_id = live if live is not None else await self._newest(workspace_id, document_id)
        rows = await self.session.execute(
            select(Passage.id, Passage.ordinal)
            .where(Passage.tenant_id == tenant_id, Passage.version_id == version_id)
            .order_by(Passage.ordinal)
        )
        return DocumentPassages(version_id, live is not None, tuple((row[0], row[1]) for row in rows))

    async def _newest(self, workspace_id: UUID, document_id: UUID) -> UUID:
        found: UUID | None = await self.session.scalar(
            select(Version.id)
            .join(Document, (Document.tenant_id == Version.tenant_id) & (Document.id == Version.document_id))
            .where(
                Version.tenant_id == self.session.tenant_id,
                Document.workspace_id == workspace_id,
                Document.id == document_id,
            )
            .order_by(Version.ordinal.desc())
            .limit(1)
        )
        if found is None:
            raise DocumentNotFound.of(document_id)
        return found
