"""The usage ledger: append-only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Date, cast, func, select, text

from app.db.models import ModelProfile, UsageEvent
from app.db.repository import TenantRepository
from app.providers.usage import UsageMeter

# Prices are for a million tokens; a model without any costs nothing that is known. What has a booking is written once.
ADD_USAGE = """
INSERT INTO usage_events (tenant_id, workspace_id, document_id, version_id, query_id, booking_id, profile_id, purpose, calls,
                          tokens_in, tokens_out, is_estimated, estimated_calls, cost)
SELECT :tenant_id, :workspace_id, :document_id, :version_id, :query_id, used.booking_id, used.profile_id, used.purpose,
       used.calls, used.tokens_in, used.tokens_out, used.estimated_calls > 0, used.estimated_calls,
       CASE WHEN m.price_input IS NOT NULL OR m.price_output IS NOT NULL THEN
            (used.tokens_in * coalesce(m.price_input, 0) + used.tokens_out * coalesce(m.price_output, 0)) / 1000000 END
  FROM unnest(CAST(:bookings AS uuid[]), CAST(:profiles AS uuid[]), CAST(:purposes AS text[]), CAST(:calls AS int[]),
              CAST(:tokens_in AS bigint[]), CAST(:tokens_out AS bigint[]), CAST(:estimated_calls AS int[]))
       AS used (booking_id, profile_id, purpose, calls, tokens_in, tokens_out, estimated_calls)
  JOIN model_profiles m ON m.id = used.profile_id
    ON CONFLICT (tenant_id, booking_id, profile_id, purpose) WHERE booking_id IS NOT NULL DO NOTHING
"""
_ADD = text(f"{ADD_USAGE} RETURNING cost")


@dataclass(frozen=True)
class UsageFilter:
    """Which events are wanted; None leaves a field open."""

    workspace_id: UUID | None = None
    document_id: UUID | None = None
    query_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class UsageSum:
    """What a group of events used. `cost` is None where no model of the group has a price."""

    key: str | None
    calls: int
    estimated_calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None


def _day() -> ColumnElement[Any]:
    return cast(func.timezone("UTC", UsageEvent.created_at), Date)


GROUPS: Mapping[str, Any] = {
    "day": _day(),
    "workspace": UsageEvent.workspace_id,
    "document": UsageEvent.document_id,
    "query": UsageEvent.query_id,
    "model": ModelProfile.name,
    "purpose": UsageEvent.purpose,
}


class UsageLedger(TenantRepository):
    """Rows of one tenant."""

    async def add(
        self,
        meter: UsageMeter,
        workspace_id: UUID,
        *,
        document_id: UUID | None = None,
        version_id: UUID | None = None,
        query_id: UUID | None = None,
        booking_id: UUID | None = None,
    ) -> float | None:
        """One row per model and purpose, at today's prices; what it cost, or None where no model has a price.

        With a `booking_id` what was written under it before is not written again, and costs None.
        A model that was removed in the meantime cannot be billed any more.
        """
        values = {
            "tenant_id": self.session.tenant_id,
            "workspace_id": workspace_id,
            "document_id": document_id,
            "version_id": version_id,
            "query_id": query_id,
        }
        costs = await self.session.scalars(_ADD, values | usage_columns([(booking_id, meter)]))
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known else None

    async def sums(self, wanted: UsageFilter, group_by: str | None, *, limit: int) -> Sequence[UsageSum]:
        """By `group_by` (a name of GROUPS), the newest day or else the largest first; one row over all without it.

        Groups without a key are left out: not every call belongs to a document or to a query.
        """
        key = GROUPS[group_by] if group_by is not None else None
        sums = (
            func.coalesce(func.sum(UsageEvent.calls), 0),
            func.coalesce(func.sum(UsageEvent.estimated_calls), 0),
            func.coalesce(func.sum(UsageEvent.tokens_in), 0),
            func.coalesce(func.sum(UsageEvent.tokens_out), 0),
            func.sum(UsageEvent.cost),
        )
        conditions = [UsageEvent.tenant_id == self.session.tenant_id, *_conditions(wanted)]
        query = select(*([key] if key is not None else []), *sums).select_from(UsageEvent)
        query = query.join(ModelProfile, ModelProfile.id == UsageEvent.profile_id).where(*conditions)
        if key is not None:
            order = key.desc() if group_by == "day" else func.sum(UsageEvent.tokens_in + UsageEvent.tokens_out).desc()
            query = query.where(key.is_not(None)).group_by(key).order_by(order, key).limit(limit)
        rows = (await self.session.execute(query)).all()
        return [
            UsageSum(
                key=str(row[0]) if key is not None else None,
                calls=int(row[-5]),
                estimated_calls=int(row[-4]),
                tokens_in=int(row[-3]),
                tokens_out=int(row[-2]),
                cost=row[-1],
            )
            for row in rows
        ]


def usage_columns(bookings: Sequence[tuple[UUID | None, UsageMeter]]) -> dict[str, list[Any]]:
    """The columns of ADD_USAGE for these meters, each with the id of its booking, if it has one."""
    rows = [(booking, *used) for booking, meter in bookings for used in meter.totals.items()]
    totals = [total for *_, total in rows]
    return {
        "bookings": [booking for booking, _, _ in rows],
        "profiles": [profile.id for _, (profile, _), _ in rows],
        "purposes": [purpose.value for _, (_, purpose), _ in rows],
        "calls": [total.calls for total in totals],
        "tokens_in": [total.tokens_in for total in totals],
        "tokens_out": [total.tokens_out for total in totals],
        "estimated_calls": [total.estimated_calls for total in totals],
    }


def _conditions(wanted: UsageFilter) -> list[ColumnElement[bool]]:
    equal = {"workspace_id": wanted.workspace_id, "document_id": wanted.document_id, "query_id": wanted.query_id}
    conditions: list[ColumnElement[bool]] = [
        getattr(UsageEvent, name) == value for name, value in equal.items() if value is not None
    ]
    if wanted.since is not None:
        conditions.append(UsageEvent.created_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(UsageEvent.created_at < wanted.until)
    return conditions
