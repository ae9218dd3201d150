"""Queries about what a query can be answered from."""

from collections.abc import Mapping
from typing import cast
from uuid import UUID

from sqlalchemy import and_, func, select

from app.db.models import Document, IndexState, LiveVersion
from app.db.repository import TenantRepository
from app.retrieval.contract import Engine


class TrustedDocuments(TenantRepository):
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
