"""Queries of what people decided about pairs of entities: one thing, or different ones."""

from collections.abc import Sequence
from hashlib import blake2b
from uuid import UUID

from sqlalchemy import delete, func
from sqlalchemy.dialects.postgresql import insert

from app.db.models import DuplicateDecision
from app.db.repository import TenantRepository
from app.errors import Conflict, Invalid
from app.retrieval.entity_graph_contract import Decisions

MAX_DECISIONS = 10_000


class TooManyDecisions(Conflict):
    code = "too_many_decisions"
    title = "The workspace holds no more decisions about duplicates"


class InvalidDecision(Invalid):
    code = "invalid_decision"
    title = "An entity cannot be compared with itself"


class DecisionRepository(TenantRepository):
    async def list(self, workspace_id: UUID, *, is_same: bool) -> Sequence[tuple[str, str]]:
        """By name."""
        query = self.rows(
            DuplicateDecision, DuplicateDecision.workspace_id == workspace_id, DuplicateDecision.is_same == is_same
        )
        rows = await self.session.scalars(query.order_by(DuplicateDecision.one, DuplicateDecision.other))
        return [(row.one, row.other) for row in rows]

    async def all(self, workspace_id: UUID) -> Decisions:
        same, apart = [
            frozenset(frozenset(pair) for pair in await self.list(workspace_id, is_same=is_same))
            for is_same in (True, False)
        ]
        return Decisions(same=same, apart=apart)

    async def put(self, workspace_id: UUID, one: str, other: str, *, is_same: bool) -> None:
        """Instead of what was decided about the pair before. Raises TooManyDecisions."""
        first, second = min(one, other), max(one, other)
        counted = self.rows(DuplicateDecision, DuplicateDecision.workspace_id == workspace_id).with_only_columns(
            func.count()
        )
        if (await self.session.scalar(counted) or 0) >= MAX_DECISIONS:
            raise TooManyDecisions(f"A workspace remembers {MAX_DECISIONS} decisions about pairs at most.")
        values = {
            "tenant_id": self.session.tenant_id, "workspace_id": workspace_id, "pair": _digest(first, second),
            "one": first, "other": second, "is_same": is_same,
        }  # fmt: skip
        put = insert(DuplicateDecision).values(values)
        await self.session.execute(
            put.on_conflict_do_update(
                index_elements=["tenant_id", "workspace_id", "pair"], set_={"is_same": put.excluded.is_same}
            )
        )

    async def remove(self, workspace_id: UUID, ones: Sequence[str], others: Sequence[str], *, is_same: bool) -> None:
        """Every pair of one of these and one of the others."""
        await self.session.execute(
            delete(DuplicateDecision).where(
                DuplicateDecision.tenant_id == self.session.tenant_id,
                DuplicateDecision.workspace_id == workspace_id,
                DuplicateDecision.is_same == is_same,
                DuplicateDecision.pair.in_([_digest(min(a, b), max(a, b)) for a in ones for b in others]),
            )
        )


def _digest(one: str, other: str) -> bytes:
    return blake2b(f"{one}\0{other}".encode(), digest_size=16).digest()
