"""Queries about what a query can be answered from."""

from collections.abc import Mapping
from typing import cast
from uuid import UUID

from sqlalchemy import and_, func, select, text

from app.db.models import Document, IndexState, LiveVersion
from app.db.repository import TenantRepository
from app.retrieval.contract import Engine

_HAS_THEMES = text("""
SELECT EXISTS (SELECT 1 FROM theme_maps m
                WHERE m.tenant_id = :tenant_id AND m.workspace_id = :workspace_id AND m.state = 'ready' AND m.levels > 0)
""")


class TrustedDocuments(TenantRepository):
    async def has_themes(self, workspace_id: UUID) -> bool:
        """Whether there is a map of the workspace's themes that can be answered from."""
        parameters = {"tenant_id": self.session.tenant_id, "workspace_id": workspace_id}
        return bool(await self.session.scalar(_HAS_THEMES, parameters))

    async def count(self, workspace_id: UUID, *, include_partial: bool) -> Mapping[Engine, int]:
        """Documents that each engine answers from, by the rule of `app/retrieval/store/trust.py`; one without any is missing."""
        live, state = LiveVersion, IndexState
        query = (
            select(live.engine, func.count())
            .join(
                state,
                and_(
                    state.tenant_id == live.tenant_id,
                    state.version_id == live.version_id,
                    state.engine == live.engine,
                    state.state.in_(("ready", "partial") if include_partial else ("ready",)),
                    state.cleanliness == "clean",
                ),
            )
            .join(
                Document,
                and_(
                    Document.tenant_id == live.tenant_id,
                    Document.id == live.document_id,
                    Document.deleting_at.is_(None),
                ),
            )
            .where(live.tenant_id == self.session.tenant_id, live.workspace_id == workspace_id)
            .group_by(live.engine)
        )
        return {cast(Engine, row[0]): row[1] for row in await self.session.execute(query)}
