"""Sends what is due to webhooks. Any number may run: each delivery is claimed by a row, and due again if its sender dies.

The address is resolved and looked at for each attempt, and the connection goes to that very address, so that a name
cannot stand for another one by then. Redirects are not followed, and the body of an answer is not read.
"""

import asyncio
import json
import ssl
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
import structlog

from app.db.base import TenantId
from app.db.models import Event
from app.db.session import Database
from app.domain.events.addresses import checked_url, resolve
from app.domain.events.errors import WebhookUrlRefused
from app.domain.events.signing import signature
from app.domain.events.webhook_repository import Attempt, WebhookRepository, due_deliveries, in_seconds
from app.domain.events.webhooks import webhook_box
from app.domain.secret_box import SecretUnreadable
from app.metrics import WEBHOOK_ATTEMPTS
from app.settings import Settings

logger = structlog.stdlib.get_logger(__name__)

MAX_DUE = 200
CONCURRENCY = 16
BACKOFF_FACTOR = 4
LONGEST_BACKOFF_SECONDS = 12 * 3600.0
GONE = 410


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt: the status of the answer, or why there was none."""

    status: int | None
    error_code: str | None

    @property
    def is_delivered(self) -> bool:
        return self.error_code is None


class WebhookSender:
    def __init__(self, database: Database, settings: Settings, client: httpx.AsyncClient) -> None:
        """`client` must neither keep connections nor follow redirects nor use proxies."""
        self._database = database
        self._settings = settings
        self._client = client
        self._box = webhook_box(settings.secret_key)
        self._running = asyncio.Lock()

    async def run(self) -> int:
        """Send what is due, many at a time; how many were tried. One run a process at a time: slow receivers must not
        take all of a worker's threads."""
        if self._running.locked():
            return 0
        async with self._running:
            async with self._database.system() as session:
                due = await due_deliveries(session, MAX_DUE)
            slots = asyncio.Semaphore(CONCURRENCY)

            async def deliver(tenant_id: UUID, delivery_id: UUID) -> None:
                async with slots:
                    await self._deliver(TenantId(tenant_id), delivery_id)

            async with asyncio.TaskGroup() as group:
                for tenant_id, delivery_id in due:
                    group.create_task(deliver(tenant_id, delivery_id))
        return len(due)

    async def _deliver(self, tenant_id: TenantId, delivery_id: UUID) -> None:
        # Longer than an attempt can take.
        lease_seconds = 3 * self._settings.webhook_timeout_seconds + 10
        async with self._database.tenant(tenant_id) as session:
            attempt = await WebhookRepository(session).claim(delivery_id, lease_seconds=lease_seconds)
        if attempt is None:
            return
        outcome = await self._send(attempt)
        WEBHOOK_ATTEMPTS.labels(outcome.error_code or "delivered").inc()
        async with self._database.tenant(tenant_id) as session:
            await self._conclude(WebhookRepository(session), attempt, outcome)

    async def _send(self, attempt: Attempt) -> Outcome:
        try:
            async with asyncio.timeout(self._settings.webhook_timeout_seconds):
                status = await self._post(attempt)
        except WebhookUrlRefused as error:
            return Outcome(None, error.code)
        except SecretUnreadable as error:
            return Outcome(None, error.code)
        except (TimeoutError, httpx.TimeoutException):
            return Outcome(None, "timeout")
        except (httpx.HTTPError, OSError, UnicodeError) as error:
            return Outcome(None, "certificate_refused" if _is_certificate(error) else "unreachable")
        return Outcome(status, None if httpx.codes.is_success(status) else "refused")

    async def _post(self, attempt: Attempt) -> int:
        url = checked_url(attempt.url, allow_private=self._settings.webhook_allow_private)
        address = await resolve(url, allow_private=self._settings.webhook_allow_private)
        body = payload(attempt.event)
        message_id, timestamp = message_id_of(attempt.event), int(time.time())
        secret = self._box.decrypt(attempt.key).decode()
        request = self._client.build_request(
            "POST",
            url.copy_with(host=address),
            content=body,
            headers={
                "Host": url.netloc.decode("ascii"),
                "Content-Type": "application/json",
                "User-Agent": "Trellis-Webhooks/1",
                "webhook-id": message_id,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": signature(secret, message_id, timestamp, body),
            },
            # The certificate must be the name's, whatever address it was found at.
            extensions={"sni_hostname": url.raw_host.decode("ascii")},
        )
        response = await self._client.send(request, stream=True)
        await response.aclose()
        return response.status_code

    async def _conclude(self, webhooks: WebhookRepository, attempt: Attempt, outcome: Outcome) -> None:
        known: dict[str, Any] = {"response_status": outcome.status, "error_code": outcome.error_code}
        if outcome.is_delivered:
            await webhooks.conclude(attempt, state="delivered", delivered_at=in_seconds(0), **known)
            return
        is_gone = outcome.status == GONE
        if attempt.number < self._settings.webhook_max_attempts and not is_gone:
            pause = backoff_seconds(attempt.number, self._settings.webhook_backoff_seconds)
            await webhooks.conclude(attempt, next_attempt_at=in_seconds(pause), **known)
        elif await webhooks.conclude(attempt, state="failed", **known):
            reason = "gone" if is_gone else "gave_up"
            await webhooks.disable(attempt.webhook_id, reason)
            logger.warning("webhook_disabled", webhook_id=str(attempt.webhook_id), reason=reason)


def _is_certificate(error: BaseException | None) -> bool:
    """Whether the receiver was reached and could not prove to be who it is called; clients wrap what TLS said."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def payload(event: Event) -> bytes:
    """The body: Standard Webhooks' type, timestamp and data. Ids only; repetitions are the same to the byte."""
    told = {
        "type": event.type,
        "timestamp": event.created_at.isoformat(),
        "data": {
            "event_id": event.id,
            "workspace_id": str(event.workspace_id),
            "document_id": str(event.document_id),
            "version_id": str(event.version_id) if event.version_id else None,
        },
    }
    return json.dumps(told, separators=(",", ":")).encode()


def message_id_of(event: Event) -> str:
    """The same for every attempt and replay of an event, by which a receiver knows what it has had."""
    return f"evt_{event.workspace_id.hex}_{event.id}"


def backoff_seconds(attempt: int, first: float) -> float:
    """Seconds before the attempt after this one: `first`, four times that, and so on, up to half a day."""
    return float(min(first * BACKOFF_FACTOR ** (attempt - 1), LONGEST_BACKOFF_SECONDS))
