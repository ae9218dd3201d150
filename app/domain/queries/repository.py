"""Queries about what a query can be answered from."""

from collections.abc import Mapping
from typing import cast
from uuid import UUID

from sqlalchemy import func, select

from app.db.models import LiveVersion
from app.db.repository import TenantRepository
from app.retrieval.contract import Engine


class TrustedDocuments(TenantRepository):
    async def count(self, workspace_id: UUID) -> Mapping[Engine, int]:
        """Documents that each engine has a live version of; an engine without any is missing."""
        query = (
            select(LiveVersion.engine, func.count())
            .where(LiveVersion.tenant_id == self.session.tenant_id, LiveVersion.workspace_id == workspace_id)
            .group_by(LiveVersion.engine)
        )
        return {cast(Engine, row[0]): row[1] for row in await self.session.execute(query)}
