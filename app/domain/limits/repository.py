"""Plans, and what tenants hold and have spent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import bindparam, func, select, text

from app.db.models import IndexState, ModelProfile, Plan, Tenant, TenantMonth, TenantTotals, UsageEvent
from app.db.repository import TenantRepository
from app.db.session import SystemSession

NEXT_WORK = text("SELECT tenant_id, workspace_id, version_id FROM next_work(:engine, :tenant_id, :version_id)")
LIMITS = ("requests_per_minute", "concurrent_ingestions", "documents", "stored_bytes", "model_tokens_per_month")


@dataclass(frozen=True)
class Standing:
    """A tenant's plan, and what of it is used; months are those of UTC."""

    plan: Plan | None
    documents: int
    stored_bytes: int
    model_tokens: int
    month_ends_at: datetime

    @property
    def is_spent(self) -> bool:
        limit = self.plan.model_tokens_per_month if self.plan is not None else None
        return limit is not None and self.model_tokens >= limit


@dataclass(frozen=True)
class UsageRates:
    """Tokens of one call of extraction, on average."""

    tokens_in: float
    tokens_out: float


@dataclass(frozen=True)
class ModelPrices:
    """Money for a million tokens; None is not known."""

    chat_in: float | None
    chat_out: float | None
    embedding_in: float | None


# Fewer calls than these say little about the next ones.
CALLS_OF_A_RATE = 20


# Asked by every query.
_STANDING = (
    select(Plan, TenantTotals.documents, TenantTotals.stored_bytes, TenantMonth.model_tokens)
    .select_from(Tenant)
    .outerjoin(Plan, Plan.name == Tenant.plan)
    .outerjoin(TenantTotals, TenantTotals.tenant_id == Tenant.id)
    .outerjoin(TenantMonth, (TenantMonth.tenant_id == Tenant.id) & (TenantMonth.month == bindparam("month")))
    .where(Tenant.id == bindparam("tenant_id"))
)


class LimitsRepository(TenantRepository):
    """Of one tenant."""

    async def standing(self) -> Standing:
        tenant_id = self.session.tenant_id
        begins, ends = month_of(datetime.now(UTC))
        values = {"tenant_id": tenant_id, "month": begins.date()}
        plan, documents, stored_bytes, tokens = (await self.session.execute(_STANDING, values)).one()
        return Standing(plan, documents or 0, stored_bytes or 0, tokens or 0, ends)

    async def extraction_rates(self, workspace_id: UUID) -> UsageRates | None:
        """What extraction took in this workspace so far; None until it was called often enough."""
        query = select(
            func.sum(UsageEvent.calls), func.sum(UsageEvent.tokens_in), func.sum(UsageEvent.tokens_out)
        ).where(
            UsageEvent.tenant_id == self.session.tenant_id,
            UsageEvent.workspace_id == workspace_id,
            UsageEvent.purpose.in_(("extract", "glean")),
        )
        calls, tokens_in, tokens_out = (await self.session.execute(query)).one()
        if (calls or 0) < CALLS_OF_A_RATE:
            return None
        return UsageRates(float(tokens_in / calls), float(tokens_out / calls))

    async def prices(self, embedding_id: UUID, chat_id: UUID | None) -> ModelPrices:
        rows = await self.session.scalars(select(ModelProfile).where(ModelProfile.id.in_([embedding_id, chat_id])))
        found = {row.id: row for row in rows}
        chat = found.get(chat_id) if chat_id is not None else None
        return ModelPrices(
            chat.price_input if chat else None, chat.price_output if chat else None, found[embedding_id].price_input
        )

    async def engines_behind_limit(self) -> Sequence[str]:
        """Engines with queued work of a tenant whose plan bounds what is ingested at once: it must be called when something
        ends."""
        query = (
            select(IndexState.engine)
            .join(Tenant, Tenant.id == IndexState.tenant_id)
            .join(Plan, Plan.name == Tenant.plan)
            .where(
                IndexState.tenant_id == self.session.tenant_id,
                IndexState.state == "queued",
                Plan.concurrent_ingestions.is_not(None),
            )
            .distinct()
        )
        return (await self.session.scalars(query)).all()


class PlanDirectory:
    """All plans; needs an operator's session to write."""

    def __init__(self, session: SystemSession) -> None:
        self._session = session

    async def find(self, name: str) -> Plan | None:
        return await self._session.get(Plan, name)

    async def list(self) -> Sequence[Plan]:
        return (await self._session.scalars(select(Plan).order_by(Plan.name))).all()

    async def put(self, name: str, limits: dict[str, int | None]) -> Plan:
        """Make or replace a plan; its tenants have the new limits from the commit on."""
        plan = await self.find(name) or Plan(name=name)
        for limit in LIMITS:
            setattr(plan, limit, limits.get(limit))
        plan.updated_at = func.now()
        self._session.add(plan)
        await self._session.flush()
        await self._session.refresh(plan)
        return plan


class FairQueue:
    """Whose turn it is, over all tenants, as ids only."""

    def __init__(self, session: SystemSession) -> None:
        self._session = session

    async def next(self, engine: str, tenant_id: UUID, version_id: UUID) -> tuple[UUID, UUID, UUID] | None:
        """(tenant, workspace, version) to work on for a message that named `version_id`; None if nobody may go on now."""
        values = {"engine": engine, "tenant_id": tenant_id, "version_id": version_id}
        row = (await self._session.execute(NEXT_WORK, values)).one_or_none()
        return (row[0], row[1], row[2]) if row is not None else None


def month_of(moment: datetime) -> tuple[datetime, datetime]:
    """Beginning and end of the calendar month of UTC."""
    begins = moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    year, month = (begins.year + 1, 1) if begins.month == 12 else (begins.year, begins.month + 1)
    return begins, begins.replace(year=year, month=month)
