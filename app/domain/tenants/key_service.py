"""Makes, rotates and revokes the API keys of one tenant, for its own admins and for operators alike."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import func

from app.db.models import ApiKey
from app.db.session import TenantSession
from app.domain.tenants.keys import hash_secret, new_key
from app.domain.tenants.records import KeyDraft, Role
from app.domain.tenants.repository import KeyRepository
from app.errors import Conflict, NotFound


class KeyTargetMissing(NotFound):
    """The workspace that the key should be bound to does not exist."""

    code = "workspace_not_found"
    title = "Workspace not found"


class KeyNotFound(NotFound):
    """The tenant has no such key."""

    code = "key_not_found"
    title = "API key not found"


class KeyNotInUse(Conflict):
    """The key is revoked or expired, so there is nothing to rotate."""

    code = "key_not_in_use"
    title = "The API key is not in use"


class KeyService:
    """Works within the caller's transaction. The text of a key is given out once: only its secret's hash is kept."""

    def __init__(self, session: TenantSession) -> None:
        self._session = session
        self._keys = KeyRepository(session)

    async def list(self, *, after: tuple[datetime, UUID] | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        return await self._keys.list(after=after, limit=limit)

    async def create(self, draft: KeyDraft) -> tuple[ApiKey, str]:
        """The row of a new key and its text. Raises KeyTargetMissing if the tenant has no such workspace."""
        if draft.workspace_id is not None and not await self._keys.has_workspace(draft.workspace_id):
            raise KeyTargetMissing(f"This tenant has no workspace {draft.workspace_id}.")
        key = new_key()
        row = await self._keys.add(draft, prefix=key.prefix, secret_hash=hash_secret(key.secret))
        return row, key.text

    async def revoke(self, key_id: UUID) -> ApiKey:
        """It stops working with the next request; revoking twice changes nothing. Raises KeyNotFound."""
        row = await self._get(key_id)
        await self._keys.revoke(row.id)
        await self._session.refresh(row)
        return row

    async def rotate(self, key_id: UUID, *, overlap: timedelta) -> tuple[ApiKey, str]:
        """A new key with the rights of the old one, which goes on working for `overlap` so that its users can change over.

        Raises KeyNotFound or KeyNotInUse.
        """
        old = await self._get(key_id)
        now = await self._session.scalar(func.now())
        if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
            raise KeyNotInUse("This key is revoked or expired; make a new one.", key_id=key_id)
        draft = KeyDraft(old.name, Role(old.role), old.workspace_id, old.expires_at)
        made = await self.create(draft)
        if overlap:
            old.expires_at = min(old.expires_at, now + overlap) if old.expires_at else now + overlap
        else:
            old.revoked_at = now
        await self._session.flush()
        return made

    async def find_by_prefix(self, prefix: str) -> ApiKey:
        """Raises KeyNotFound."""
        key = await self._keys.find_by_prefix(prefix)
        if key is None:
            raise KeyNotFound(f"This tenant has no key with the prefix {prefix!r}.")
        return key

    async def _get(self, key_id: UUID) -> ApiKey:
        key = await self._keys.lock(key_id)
        if key is None:
            raise KeyNotFound(f"This tenant has no key {key_id}.", key_id=key_id)
        return key
