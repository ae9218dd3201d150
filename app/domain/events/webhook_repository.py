"""Queries for webhooks and their deliveries. Times are the database's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, literal, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from app.db.models import Event, Webhook, WebhookDelivery
from app.db.repository import TenantRepository
from app.db.session import SystemSession
from app.domain.events.errors import WebhookNotFound

DUE = text("SELECT tenant_id, id FROM due_webhook_deliveries(:max_rows)")


@dataclass(frozen=True)
class Attempt:
    """One attempt at one delivery, with what is to be sent and where to."""

    delivery_id: UUID
    webhook_id: UUID
    number: int
    url: str
    key: bytes
    event: Event


class WebhookRepository(TenantRepository):
    async def get(self, workspace_id: UUID, webhook_id: UUID, *, for_update: bool = False) -> Webhook:
        """Raises WebhookNotFound."""
        query = self.rows(Webhook, Webhook.workspace_id == workspace_id, Webhook.id == webhook_id)
        found = await self.session.scalar(query.with_for_update() if for_update else query)
        if found is None:
            raise WebhookNotFound(f"There is no webhook {webhook_id} in this workspace.", webhook_id=webhook_id)
        return found

    async def find(self, webhook_id: UUID) -> Webhook | None:
        """Whichever of the tenant's workspaces it is of."""
        return await self.session.scalar(self.rows(Webhook, Webhook.id == webhook_id))

    async def list(self, workspace_id: UUID, *, after: tuple[datetime, UUID] | None, limit: int) -> Sequence[Webhook]:
        """In order of creation, from the first after `after`."""
        query = self.rows(Webhook, Webhook.workspace_id == workspace_id)
        if after is not None:
            query = query.where(tuple_(Webhook.created_at, Webhook.id) > tuple_(*after))
        return (await self.session.scalars(query.order_by(Webhook.created_at, Webhook.id).limit(limit))).all()

    async def of_tenant(self) -> Sequence[Webhook]:
        """The webhooks of all its workspaces, to be changed."""
        return (await self.session.scalars(self.rows(Webhook).with_for_update())).all()

    async def count(self, workspace_id: UUID) -> int:
        query = select(func.count()).where(
            Webhook.tenant_id == self.session.tenant_id, Webhook.workspace_id == workspace_id
        )
        return int(await self.session.scalar(query) or 0)

    async def remove(self, webhook_id: UUID) -> None:
        await self.session.execute(
            delete(Webhook).where(Webhook.tenant_id == self.session.tenant_id, Webhook.id == webhook_id)
        )

    async def list_deliveries(
        self, webhook_id: UUID, *, before: int | None, limit: int
    ) -> "Sequence[tuple[WebhookDelivery, str]]":
        """Newest event first, each with the event's type."""
        query = (
            select(WebhookDelivery, Event.type)
            .join(
                Event,
                (Event.tenant_id == WebhookDelivery.tenant_id)
                & (Event.workspace_id == WebhookDelivery.workspace_id)
                & (Event.id == WebhookDelivery.event_id),
            )
            .where(WebhookDelivery.tenant_id == self.session.tenant_id, WebhookDelivery.webhook_id == webhook_id)
        )
        if before is not None:
            query = query.where(WebhookDelivery.event_id < before)
        rows = await self.session.execute(query.order_by(WebhookDelivery.event_id.desc()).limit(limit))
        return [(row[0], row[1]) for row in rows]

    async def replay_failed(self, webhook_id: UUID) -> int:
        """Let what was given up be sent again; how many."""
        statement = (
            update(WebhookDelivery)
            .where(
                WebhookDelivery.tenant_id == self.session.tenant_id,
                WebhookDelivery.webhook_id == webhook_id,
                WebhookDelivery.state == "failed",
            )
            .values(**_pending())
            .returning(WebhookDelivery.id)
            .execution_options(synchronize_session=False)
        )
        return len((await self.session.scalars(statement)).all())

    async def replay_after(self, webhook: Webhook, after_event_id: int) -> int:
        """Let every kept event above `after_event_id` that the webhook asks for be sent, again or for the first time."""
        events = select(Event.tenant_id, Event.workspace_id, literal(webhook.id), Event.id).where(
            Event.tenant_id == self.session.tenant_id,
            Event.workspace_id == webhook.workspace_id,
            Event.id > after_event_id,
            Event.type.in_(webhook.events),
        )
        columns = ["tenant_id", "workspace_id", "webhook_id", "event_id"]
        statement = (
            insert(WebhookDelivery)
            .from_select(columns, events, include_defaults=False)
            .on_conflict_do_update(index_elements=["tenant_id", "webhook_id", "event_id"], set_=_pending())
            .returning(WebhookDelivery.id)
        )
        return len((await self.session.scalars(statement)).all())

    # --- sending ----------------------------------------------------------------------------------------------------

    async def claim(self, delivery_id: UUID, *, lease_seconds: float) -> Attempt | None:
        """Begin an attempt at what is due; None if it is not (any more). Whoever dies with it leaves it due again."""
        statement = (
            update(WebhookDelivery)
            .where(
                WebhookDelivery.tenant_id == self.session.tenant_id,
                WebhookDelivery.id == delivery_id,
                WebhookDelivery.state == "pending",
                WebhookDelivery.next_attempt_at <= func.clock_timestamp(),
            )
            .values(
                attempts=WebhookDelivery.attempts + 1,
                next_attempt_at=func.clock_timestamp() + timedelta(seconds=lease_seconds),
            )
            .returning(WebhookDelivery.attempts, WebhookDelivery.webhook_id, WebhookDelivery.event_id)
            .execution_options(synchronize_session=False)
        )
        row = (await self.session.execute(statement)).one_or_none()
        webhook = await self.find(row.webhook_id) if row is not None else None
        if row is None or webhook is None:
            return None
        query = self.rows(Event, Event.workspace_id == webhook.workspace_id, Event.id == row.event_id)
        event = (await self.session.scalars(query)).one()
        return Attempt(delivery_id, webhook.id, row.attempts, webhook.url, webhook.key, event)

    async def conclude(self, attempt: Attempt, **values: Any) -> bool:
        """Note how an attempt ended; False if the delivery was taken by somebody else meanwhile."""
        statement = (
            update(WebhookDelivery)
            .where(
                WebhookDelivery.tenant_id == self.session.tenant_id,
                WebhookDelivery.id == attempt.delivery_id,
                WebhookDelivery.state == "pending",
                WebhookDelivery.attempts == attempt.number,
            )
            .values(**values)
            .returning(WebhookDelivery.id)
            .execution_options(synchronize_session=False)
        )
        return await self.session.scalar(statement) is not None

    async def disable(self, webhook_id: UUID, reason: str) -> None:
        await self.session.execute(
            update(Webhook)
            .where(Webhook.tenant_id == self.session.tenant_id, Webhook.id == webhook_id)
            .values(status="disabled", disabled_reason=reason, updated_at=func.now())
            .execution_options(synchronize_session=False)
        )


async def due_deliveries(session: SystemSession, max_rows: int) -> Sequence[tuple[UUID, UUID]]:
    """(tenant, delivery) of all tenants, longest due first."""
    return [(row[0], row[1]) for row in await session.execute(DUE, {"max_rows": max_rows})]


def in_seconds(seconds: float) -> Any:
    """That long from now, by the database's clock."""
    return func.clock_timestamp() + timedelta(seconds=seconds)


def _pending() -> dict[str, Any]:
    return {
        "state": "pending",
        "attempts": 0,
        "next_attempt_at": func.clock_timestamp(),
        "response_status": None,
        "error_code": None,
        "delivered_at": None,
    }
