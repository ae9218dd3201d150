"""Queries of pairs of entities that are known to be different things."""

from collections.abc import Sequence
from hashlib import blake2b
from uuid import UUID

from sqlalchemy import delete, func
from sqlalchemy.dialects.postgresql import insert

from app.db.models import EntityRejection
from app.db.repository import TenantRepository
from app.errors import Conflict, Invalid

MAX_REJECTIONS = 10_000


class TooManyRejections(Conflict):
    code = "too_many_rejections"
    title = "The workspace holds no more rejections"


class InvalidRejection(Invalid):
    code = "invalid_rejection"
    title = "An entity cannot be told apart from itself"


class RejectionRepository(TenantRepository):
    async def list(self, workspace_id: UUID) -> Sequence[tuple[str, str]]:
        """By name."""
        query = self.rows(EntityRejection, EntityRejection.workspace_id == workspace_id)
        rows = await self.session.scalars(query.order_by(EntityRejection.one, EntityRejection.other))
        return [(row.one, row.other) for row in rows]

    async def pairs(self, workspace_id: UUID) -> frozenset[frozenset[str]]:
        return frozenset(frozenset(pair) for pair in await self.list(workspace_id))

    async def add(self, workspace_id: UUID, one: str, other: str) -> None:
        """Raises TooManyRejections."""
        first, second = min(one, other), max(one, other)
        counted = self.rows(EntityRejection, EntityRejection.workspace_id == workspace_id).with_only_columns(
            func.count()
        )
        if (await self.session.scalar(counted) or 0) >= MAX_REJECTIONS:
            raise TooManyRejections(f"A workspace remembers {MAX_REJECTIONS} rejected pairs at most.")
        values = {
            "tenant_id": self.session.tenant_id, "workspace_id": workspace_id, "pair": _digest(first, second),
            "one": first, "other": second,
        }  # fmt: skip
        await self.session.execute(insert(EntityRejection).values(values).on_conflict_do_nothing())

    async def remove(self, workspace_id: UUID, ones: Sequence[str], others: Sequence[str]) -> None:
        """Every pair of one of these and one of the others."""
        await self.session.execute(
            delete(EntityRejection).where(
                EntityRejection.tenant_id == self.session.tenant_id,
                EntityRejection.workspace_id == workspace_id,
                EntityRejection.one.in_([*ones, *others]),
                EntityRejection.pair.in_([_digest(min(a, b), max(a, b)) for a in ones for b in others]),
            )
        )


def _digest(one: str, other: str) -> bytes:
    return blake2b(f"{one}\0{other}".encode(), digest_size=16).digest()
