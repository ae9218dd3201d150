"""Decides whether a request with an Idempotency-Key is carried out, answered from before, or refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID, uuid4

from pydantic import SecretStr

from app.db.base import TenantId
from app.db.session import Database
from app.domain.idempotency.errors import IdempotencyInProgress
from app.domain.idempotency.repository import IdempotencyRepository, Name
from app.domain.secret_box import SecretBox

RETRY_AFTER_SECONDS = 1


@dataclass(frozen=True)
class KeptAnswer:
    """The answer to the first request, and the fingerprint of what was asked."""

    fingerprint: bytes
    status: int
    headers: Mapping[str, str]
    body: bytes


class IdempotencyService:
    """Each step is a transaction of its own. Answers are encrypted, for some hold secrets that are shown once."""

    def __init__(self, database: Database, secret_key: SecretStr, *, lease_seconds: float, keep_seconds: float) -> None:
        self._database = database
        self._box = SecretBox(secret_key, "trellis idempotency answers")
        self._keep_seconds = keep_seconds
        self.lease_seconds = lease_seconds

    async def begin(self, tenant_id: TenantId, name: Name) -> UUID | KeptAnswer:
        """The owner's id under which to carry out the request and then to call `finish` or `release`; or the answer
        that was given before. Raises IdempotencyInProgress."""
        owner = uuid4()
        async with self._database.tenant(tenant_id) as session:
            answers = IdempotencyRepository(session)
            if await answers.claim(name, owner, lease_seconds=self.lease_seconds, keep_seconds=self._keep_seconds):
                return owner
            found = await answers.find(name)
        if found is None or found.status is None:
            raise IdempotencyInProgress(
                "The first request with this Idempotency-Key has not been answered yet.",
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        return KeptAnswer(found.fingerprint, found.status, found.headers, self._box.decrypt(found.body_encrypted))

    async def extend(self, tenant_id: TenantId, owner: UUID) -> None:
        """Show that the request is still being carried out."""
        async with self._database.tenant(tenant_id) as session:
            await IdempotencyRepository(session).extend(owner, self.lease_seconds)

    async def finish(self, tenant_id: TenantId, owner: UUID, answer: KeptAnswer) -> None:
        """Keep the answer; nothing is kept if another request has taken the key over."""
        async with self._database.tenant(tenant_id) as session:
            await IdempotencyRepository(session).finish(
                owner,
                fingerprint=answer.fingerprint,
                status=answer.status,
                headers=dict(answer.headers),
                body_encrypted=self._box.encrypt(answer.body),
            )

    async def release(self, tenant_id: TenantId, owner: UUID) -> None:
        """Give the key back: the request had no effect."""
        async with self._database.tenant(tenant_id) as session:
            await IdempotencyRepository(session).release(owner)
