"""What webhooks and their deliveries look like over HTTP."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.api.fields import Body
from app.api.pagination import Page
from app.api.v1.events.schemas import EventType
from app.api.v1.workspaces.schemas import EXAMPLE_ID as WORKSPACE_ID
from app.db.models import Webhook, WebhookDelivery
from app.domain.workspaces.settings import without_control_characters

WEBHOOK_ID = "2f0c8b6e-90a2-4f5e-8b53-0d3c54f1a7b0"
ALL_EVENTS = ["document.ready", "document.partial", "document.failed", "document.cancelled", "document.deleted"]
EXAMPLE: dict[str, Any] = {
    "id": WEBHOOK_ID,
    "workspace_id": WORKSPACE_ID,
    "url": "https://product.example.com/trellis",
    "events": ["document.ready", "document.failed"],
    "status": "active",
    "disabled_reason": None,
    "created_at": "2026-11-30T13:00:00Z",
    "updated_at": "2026-11-30T13:00:00Z",
}
DELIVERY_EXAMPLE: dict[str, Any] = {
    "event_id": 42,
    "type": "document.ready",
    "state": "pending",
    "attempts": 2,
    "next_attempt_at": "2026-11-30T13:00:50Z",
    "response_status": 503,
    "error_code": "refused",
    "delivered_at": None,
}


def _distinct(events: list[EventType]) -> list[EventType]:
    return list(dict.fromkeys(events))


Url = Annotated[
    str,
    Field(min_length=1, max_length=2000, description="Where to; `https` and a public address."),
    AfterValidator(without_control_characters),
]
Events = Annotated[list[EventType], Field(min_length=1, description="What is sent."), AfterValidator(_distinct)]


class WebhookCreate(Body):
    """Where events are to be sent."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"url": EXAMPLE["url"], "events": EXAMPLE["events"]}]})

    url: Url
    events: Events = Field(default_factory=lambda: list(ALL_EVENTS))  # type: ignore[arg-type] # the names of the type


class WebhookUpdate(Body):
    """What to change."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "active"}]})

    url: Url | None = None
    events: Events | None = None
    status: Literal["active", "disabled"] | None = None


class WebhookRead(BaseModel):
    """An address that events are sent to. A disabled one gets nothing until it is enabled again."""

    model_config = ConfigDict(from_attributes=True, json_schema_extra={"examples": [EXAMPLE]})

    id: UUID
    workspace_id: UUID
    url: str
    events: list[EventType]
    status: Literal["active", "disabled"]
    disabled_reason: Literal["asked", "gave_up", "gone"] | None = Field(
        description="`asked`: by you; `gave_up`: an event could not be delivered; `gone`: the receiver answered 410."
    )
    created_at: datetime
    updated_at: datetime


class WebhookCreated(WebhookRead):
    """A webhook with its secret, which is shown this once."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [EXAMPLE | {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}]}
    )

    secret: str = Field(default="", description="For checking signatures; keep it.")

    @classmethod
    def made(cls, webhook: Webhook, secret: str) -> Self:
        return cls.model_validate(webhook).model_copy(update={"secret": secret})


class WebhookPage(Page[WebhookRead]):
    """Webhooks in order of creation."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [EXAMPLE], "next_cursor": None}]})


class DeliveryRead(BaseModel):
    """How far the delivery of one event is."""

    model_config = ConfigDict(from_attributes=True, json_schema_extra={"examples": [DELIVERY_EXAMPLE]})

    event_id: int
    type: EventType
    state: Literal["pending", "delivered", "failed"]
    attempts: int
    next_attempt_at: datetime | None = Field(description="While it is pending.")
    response_status: int | None = Field(description="Of the last answer.")
    error_code: str | None = Field(description="Why the last attempt failed.")
    delivered_at: datetime | None

    @classmethod
    def of(cls, row: WebhookDelivery, event_type: str) -> Self:
        plain = {name: getattr(row, name) for name in cls.model_fields if hasattr(row, name)}
        next_at = row.next_attempt_at if row.state == "pending" else None
        return cls.model_validate({**plain, "type": event_type, "next_attempt_at": next_at})


class DeliveryPage(Page[DeliveryRead]):
    """Deliveries, newest event first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [DELIVERY_EXAMPLE], "next_cursor": None}]})


class WebhookReplay(Body):
    """What to send again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"after_event_id": 41}, {}]})

    after_event_id: int | None = Field(
        default=None, ge=0, le=2**63 - 1,
        description="All kept events above this id that the webhook asks for; left out, only what was given up.",
    )  # fmt: skip


class ReplayAccepted(BaseModel):
    """How many deliveries were queued."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"queued": 3}]})

    queued: int
