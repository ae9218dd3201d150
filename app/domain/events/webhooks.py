"""Makes, changes and removes webhooks, and lets what they missed be sent again."""

from collections.abc import Sequence
from uuid import UUID, uuid4

from pydantic import SecretStr
from sqlalchemy import func

from app.db.base import WorkspaceId
from app.db.models import Webhook
from app.db.session import TenantSession
from app.domain.events.addresses import checked_url
from app.domain.events.errors import TooManyWebhooks, WebhookDisabled
from app.domain.events.signing import new_secret
from app.domain.events.webhook_repository import WebhookRepository
from app.domain.secret_box import SecretBox
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting

MAX_WEBHOOKS = 20


def webhook_box(secret_key: SecretStr) -> SecretBox:
    """What webhooks' secrets are encrypted with at rest."""
    return SecretBox(secret_key, "trellis webhook secrets")


class WebhookService:
    """Works on the webhooks of one workspace within the caller's transaction."""

    def __init__(
        self, session: TenantSession, workspace_id: WorkspaceId, secret_key: SecretStr, *, allow_private: bool
    ) -> None:
        self._session = session
        self._workspace_id = workspace_id
        self._webhooks = WebhookRepository(session)
        self._secret_key = secret_key
        self._allow_private = allow_private

    async def create(self, url: str, events: Sequence[str]) -> tuple[Webhook, str]:
        """The webhook and its secret, which nobody is shown again.

        Raises WorkspaceNotFound, WorkspaceDeleting, WebhookUrlRefused or TooManyWebhooks.
        """
        refuse_deleting((await WorkspaceRepository(self._session).get(self._workspace_id, for_update=True)).row)
        checked_url(url, allow_private=self._allow_private)
        if await self._webhooks.count(self._workspace_id) >= MAX_WEBHOOKS:
            raise TooManyWebhooks(f"A workspace has {MAX_WEBHOOKS} webhooks at most.", limit=MAX_WEBHOOKS)
        secret = new_secret()
        webhook = Webhook(
            tenant_id=self._session.tenant_id,
            workspace_id=self._workspace_id,
            id=uuid4(),
            url=url,
            events=list(events),
            key=webhook_box(self._secret_key).encrypt(secret.encode()),
        )
        self._session.add(webhook)
        await self._session.flush()
        await self._session.refresh(webhook)
        return webhook, secret

    async def update(
        self, webhook_id: UUID, *, url: str | None, events: Sequence[str] | None, status: str | None
    ) -> Webhook:
        """Change what is given; what waits for a webhook that is enabled again is sent. Raises WebhookNotFound or
        WebhookUrlRefused."""
        webhook = await self._webhooks.get(self._workspace_id, webhook_id, for_update=True)
        if url is not None:
            checked_url(url, allow_private=self._allow_private)
            webhook.url = url
        if events is not None:
            webhook.events = list(events)
        if status is not None:
            webhook.status = status
            webhook.disabled_reason = None if status == "active" else "asked"
        webhook.updated_at = func.now()
        await self._session.flush()
        await self._session.refresh(webhook)
        return webhook

    async def delete(self, webhook_id: UUID) -> Webhook:
        """With its deliveries. Raises WebhookNotFound."""
        webhook = await self._webhooks.get(self._workspace_id, webhook_id)
        await self._webhooks.remove(webhook_id)
        return webhook

    async def replay(self, webhook_id: UUID, after_event_id: int | None) -> int:
        """Queue all kept events above `after_event_id`, or, without it, those that were given up; how many.

        Raises WebhookNotFound or WebhookDisabled.
        """
        webhook = await self._webhooks.get(self._workspace_id, webhook_id, for_update=True)
        return await replay(self._session, webhook, after_event_id)


async def replay(session: TenantSession, webhook: Webhook, after_event_id: int | None) -> int:
    """See `WebhookService.replay`. Raises WebhookDisabled."""
    if webhook.status != "active":
        raise WebhookDisabled("The webhook is disabled; enable it first.", reason=webhook.disabled_reason)
    webhooks = WebhookRepository(session)
    if after_event_id is None:
        return await webhooks.replay_failed(webhook.id)
    return await webhooks.replay_after(webhook, after_event_id)
