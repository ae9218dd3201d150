"""Queries about what a query can be answered from."""

from uuid import UUID

from sqlalchemy import func, select

from app.db.models import LiveVersion
from app.db.repository import TenantRepository
from app.retrieval.contract import Engine


class TrustedDocuments(TenantRepository):
    async def count(self, workspace_id: UUID, engine: Engine) -> int:
        """Documents that the engine has a live version of."""
        return (
            await self.session.scalar(
                select(func.count())
                .select_from(LiveVersion)
                .where(
                    LiveVersion.tenant_id == self.session.tenant_id,
                    LiveVersion.workspace_id == workspace_id,
                    LiveVersion.engine == engine,
                )
            )
            or 0
        )
