"""Routes of webhooks."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends

from app.api.deps import AdminCaller, ContainerDep, RoleRequired, TenantUnit, WorkspaceDep
from app.api.pagination import (
    Cursor,
    InvalidCursor,
    Limit,
    decode_number,
    decode_position,
    encode_cursor,
    encode_position,
)
from app.api.problems import problems
from app.api.v1.events.webhook_schemas import (
    DeliveryPage,
    DeliveryRead,
    ReplayAccepted,
    WebhookCreate,
    WebhookCreated,
    WebhookPage,
    WebhookRead,
    WebhookReplay,
    WebhookUpdate,
)
from app.domain.events.errors import TooManyWebhooks, WebhookDisabled, WebhookNotFound, WebhookUrlRefused
from app.domain.events.webhook_repository import WebhookRepository
from app.domain.events.webhooks import WebhookService
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.domain.workspaces.repository import WorkspaceRepository

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/webhooks", tags=["events"])


async def webhook_service(session: TenantUnit, workspace_id: WorkspaceDep, container: ContainerDep) -> WebhookService:
    settings = container.settings
    return WebhookService(session, workspace_id, settings.secret_key, allow_private=settings.webhook_allow_private)


ServiceDep = Annotated[WebhookService, Depends(webhook_service)]


@router.post(
    "",
    status_code=201,
    summary="Create a webhook",
    responses=problems(RoleRequired, WorkspaceNotFound, WorkspaceDeleting, WebhookUrlRefused, TooManyWebhooks),
)
async def create_webhook(wanted: WebhookCreate, _: AdminCaller, webhooks: ServiceDep) -> WebhookCreated:
    """Events from now on are sent there, signed with the secret in the answer, which is shown this once."""
    return WebhookCreated.made(*await webhooks.create(wanted.url, wanted.events))


@router.get("", summary="List webhooks", responses=problems(RoleRequired, WorkspaceNotFound, InvalidCursor))
async def list_webhooks(
    workspace_id: WorkspaceDep, _: AdminCaller, session: TenantUnit, cursor: Cursor = None, limit: Limit = 50
) -> WebhookPage:
    """In order of creation, without their secrets."""
    after = decode_position(cursor)
    await WorkspaceRepository(session).get(workspace_id)
    found = await WebhookRepository(session).list(workspace_id, after=after, limit=limit + 1)
    page, rest = found[:limit], found[limit:]
    last = page[-1] if rest else None
    return WebhookPage(
        items=[WebhookRead.model_validate(webhook) for webhook in page],
        next_cursor=encode_position(last.created_at, last.id) if last else None,
    )


@router.get("/{webhook_id}", summary="Read a webhook", responses=problems(RoleRequired, WebhookNotFound))
async def read_webhook(
    workspace_id: WorkspaceDep, webhook_id: UUID, _: AdminCaller, session: TenantUnit
) -> WebhookRead:
    """Whether it is active, and if not, why."""
    return WebhookRead.model_validate(await WebhookRepository(session).get(workspace_id, webhook_id))


@router.patch(
    "/{webhook_id}",
    summary="Change a webhook",
    responses=problems(RoleRequired, WebhookNotFound, WebhookUrlRefused),
)
async def update_webhook(webhook_id: UUID, wanted: WebhookUpdate, _: AdminCaller, webhooks: ServiceDep) -> WebhookRead:
    """Its address, its events, or whether it is active. What waited for it is sent when it is enabled again."""
    changed = await webhooks.update(webhook_id, url=wanted.url, events=wanted.events, status=wanted.status)
    return WebhookRead.model_validate(changed)


@router.delete("/{webhook_id}", summary="Delete a webhook", responses=problems(RoleRequired, WebhookNotFound))
async def delete_webhook(webhook_id: UUID, _: AdminCaller, webhooks: ServiceDep) -> WebhookRead:
    """Nothing is sent to it any more; its deliveries are forgotten."""
    return WebhookRead.model_validate(await webhooks.delete(webhook_id))


@router.get(
    "/{webhook_id}/deliveries",
    summary="List a webhook's deliveries",
    responses=problems(RoleRequired, WebhookNotFound, InvalidCursor),
)
async def list_deliveries(
    workspace_id: WorkspaceDep,
    webhook_id: UUID,
    _: AdminCaller,
    session: TenantUnit,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> DeliveryPage:
    """What was sent, what waits for its next attempt, and what was given up; newest event first."""
    before = decode_number(cursor)
    webhooks = WebhookRepository(session)
    await webhooks.get(workspace_id, webhook_id)
    found = await webhooks.list_deliveries(webhook_id, before=before, limit=limit + 1)
    page, rest = found[:limit], found[limit:]
    return DeliveryPage(
        items=[DeliveryRead.of(row, event_type) for row, event_type in page],
        next_cursor=encode_cursor(str(page[-1][0].event_id)) if rest else None,
    )


@router.post(
    "/{webhook_id}/replay",
    status_code=202,
    summary="Send events again",
    responses=problems(RoleRequired, WebhookNotFound, WebhookDisabled),
)
async def replay_webhook(
    webhook_id: UUID, wanted: WebhookReplay, _: AdminCaller, webhooks: ServiceDep
) -> ReplayAccepted:
    """Those that were given up, or all that are kept above an id. An event keeps its `webhook-id`."""
    return ReplayAccepted(queued=await webhooks.replay(webhook_id, wanted.after_event_id))
