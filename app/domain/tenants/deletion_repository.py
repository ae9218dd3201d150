"""The record of a tenant's deletion: what it had, how much is left, and in the end the count that proves that nothing is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, text, update

from app.db.models import Document, TenantDeletion, Workspace
from app.db.repository import TenantRepository
from app.db.session import SystemSession
from app.domain.tenants.errors import TenantNotFound

RESIDUE = text(
    "SELECT table_name, remaining FROM tenant_residue(:tenant, CAST(:workspaces AS uuid[]), CAST(:numbers AS int[]))"
)


@dataclass(frozen=True)
class Deletion:
    """`proof` is None until all is gone; then it has 0 for every table and column, and for the objects."""

    tenant_id: UUID
    requested_at: datetime
    finished_at: datetime | None
    workspaces_left: int
    documents_left: int
    proof: Mapping[str, int] | None


class TenantDeletions(TenantRepository):
    """Of the tenant of an operator's session."""

    async def begin(self) -> None:
        self.session.add(TenantDeletion(tenant_id=self.session.tenant_id, workspaces={}))
        await self.session.flush()
        await self.mark_workspaces()

    async def mark_workspaces(self) -> Sequence[UUID]:
        """Have every workspace refuse work, and write down what the engines' tables know it by; those still there."""
        rows = (await self.session.scalars(self.rows(Workspace).order_by(Workspace.number))).all()
        await self.session.execute(
            update(Workspace)
            .where(Workspace.tenant_id == self.session.tenant_id, Workspace.status != "deleting")
            .values(status="deleting", updated_at=func.now())
            .execution_options(synchronize_session=False)
        )
        known = (await self._row()).workspaces
        await self._change(workspaces=known | {str(row.id): row.number for row in rows})
        return [row.id for row in rows]

    async def get(self) -> Deletion:
        """Raises TenantNotFound if nobody asked for the tenant's deletion."""
        row = await self._row()
        left = [
            await self.session.scalar(
                select(func.count()).select_from(model).where(model.tenant_id == self.session.tenant_id)
            )
            for model in (Workspace, Document)
        ]
        return Deletion(row.tenant_id, row.requested_at, row.finished_at, left[0] or 0, left[1] or 0, row.proof)

    async def note_work(self) -> None:
        """That the removal goes on, so that the sweeper does not send it a second time."""
        await self._change(changed_at=func.now())

    async def residue(self) -> Mapping[str, int]:
        """Rows that are left of the tenant, by table and column, over the whole schema."""
        known: dict[str, int] = (await self._row()).workspaces
        values = {"tenant": self.session.tenant_id, "workspaces": list(known), "numbers": list(known.values())}
        return {row.table_name: row.remaining for row in await self.session.execute(RESIDUE, values)}

    async def finish(self, proof: Mapping[str, int]) -> None:
        await self._change(finished_at=func.now(), proof=dict(proof))

    async def _row(self) -> TenantDeletion:
        row = await self.session.get(TenantDeletion, self.session.tenant_id)
        if row is None:
            raise TenantNotFound(f"No tenant {self.session.tenant_id} was or is being deleted.")
        return row

    async def _change(self, **values: Any) -> None:
        await self.session.execute(
            update(TenantDeletion)
            .where(TenantDeletion.tenant_id == self.session.tenant_id)
            .values(**values)
            .execution_options(synchronize_session=False)
        )


class StaleDeletions:
    """Deletions that stood still, over all tenants; needs an operator's session."""

    def __init__(self, session: SystemSession) -> None:
        self._session = session

    async def list(self, requeue_after: timedelta) -> Sequence[UUID]:
        query = select(TenantDeletion.tenant_id).where(
            TenantDeletion.finished_at.is_(None),
            TenantDeletion.changed_at.is_(None) | (TenantDeletion.changed_at < func.now() - requeue_after),
        )
        return (await self._session.scalars(query)).all()
