"""Verifies API keys, and makes tenants and keys for operators."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from app.db.base import TenantId, WorkspaceId
from app.db.models import ApiKey, Tenant
from app.db.session import Database, TenantSession
from app.domain.tenants.deletion_repository import Deletion, TenantDeletions
from app.domain.tenants.errors import InvalidApiKey, TenantNotFound, TenantSuspended
from app.domain.tenants.key_service import KeyService
from app.domain.tenants.keys import PresentedKey, parse_key, secret_matches
from app.domain.tenants.records import Caller, KeyDraft, Role, StoredKey
from app.domain.tenants.repository import KeyDirectory, KeyRepository, TenantDirectory
from app.errors import Conflict
from app.jobs import PurgeTenant, enqueue

# How exactly `last_used_at` is kept.
LAST_USED_PRECISION = timedelta(minutes=1)


class TenantExists(Conflict):
    code = "tenant_exists"
    title = "A tenant of this name exists"


class TenantDeleting(Conflict):
    """The tenant is being deleted; nothing else can be done with it."""

    code = "tenant_deleting"
    title = "The tenant is being deleted"


class Authenticator:
    """Turns the text of a key into a caller."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def verify(self, text: str) -> Caller:
        """Raises InvalidApiKey, or TenantSuspended for a key that would be good."""
        # A malformed key is looked up like any other, so that it costs the same as one of an unknown prefix.
        presented = parse_key(text) or PresentedKey("", "")
        async with self._database.statement() as session:
            stored = await KeyDirectory(session).find(presented.prefix)
        matches = secret_matches(presented.secret, stored.secret_hash if stored else None)
        if stored is None or not matches or not _is_current(stored):
            raise InvalidApiKey("Send a valid API key as `Authorization: Bearer trl_...`.")
        if stored.tenant_status != "active":
            raise TenantSuspended("This tenant is suspended; ask the operator of this installation.")
        await self._note_use(stored)
        workspace_id = WorkspaceId(stored.workspace_id) if stored.workspace_id else None
        return Caller(
            stored.id, TenantId(stored.tenant_id), Role(stored.role), workspace_id,
            requests_per_minute=stored.requests_per_minute,
        )  # fmt: skip

    async def _note_use(self, key: StoredKey) -> None:
        """Say now and then that the key is used: a write for each request would cost more than the request."""
        if key.last_used_at is None or key.read_at - key.last_used_at > LAST_USED_PRECISION:
            async with self._database.tenant(key.tenant_id) as session:
                await KeyRepository(session).note_use(key.id, unless_within=LAST_USED_PRECISION)


class TenantService:
    """What an operator does with tenants and their keys. Needs a database that may act as an operator."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_tenant(self, name: str) -> Tenant:
        """Raises TenantExists."""
        async with self._database.operator() as session:
            tenants = TenantDirectory(session)
            if await tenants.find_by_name(name) is not None:
                raise _exists(name)
            try:
                return await tenants.add(name)
            except IntegrityError:  # another operator was faster
                raise _exists(name) from None

    async def list_tenants(
        self, *, after: tuple[datetime, UUID] | None = None, limit: int | None = None
    ) -> Sequence[Tenant]:
        async with self._database.operator() as session:
            return await TenantDirectory(session).list(after=after, limit=limit)

    async def get_tenant(self, name_or_id: str) -> Tenant:
        """Raises TenantNotFound."""
        async with self._database.operator() as session:
            tenants = TenantDirectory(session)
            tenant = await tenants.find_by_name(name_or_id)
            if tenant is None and is_uuid(name_or_id):
                tenant = await tenants.find(UUID(name_or_id))
        if tenant is None:
            raise TenantNotFound(f"There is no tenant {name_or_id!r}.")
        return tenant

    async def suspend(self, tenant_id: UUID) -> Tenant:
        """Its keys answer 403 and its queued work waits from now on; what is running ends. Safe to repeat."""
        return await self._set_status(tenant_id, "suspended")

    async def resume(self, tenant_id: UUID) -> Tenant:
        """Its keys work again, and the sweeper sends what has waited. Safe to repeat."""
        return await self._set_status(tenant_id, "active")

    async def delete(self, tenant_id: UUID) -> Deletion:
        """Have the tenant removed with all it has: from this commit on its keys are void and it takes no work."""
        async with self._database.operator(tenant_id) as session:
            tenant = await _lock(session, tenant_id)
            deletions = TenantDeletions(session)
            if tenant.status != "deleting":
                tenant.status = "deleting"
                await session.flush()
                await KeyRepository(session).revoke_all()
                await deletions.begin()
            enqueue(session, PurgeTenant(tenant_id))
            return await deletions.get()

    async def deletion(self, tenant_id: UUID) -> Deletion:
        """How far it is, or its proof, also when the tenant is gone. Raises TenantNotFound for one that was not asked for."""
        async with self._database.operator(tenant_id) as session:
            return await TenantDeletions(session).get()

    @asynccontextmanager
    async def keys(self, tenant_id: UUID) -> AsyncIterator[KeyService]:
        """One transaction on the keys of a tenant. Raises TenantNotFound or TenantDeleting."""
        async with self._database.operator(tenant_id) as session:
            refuse_deleting(await _lock(session, tenant_id))
            yield KeyService(session)

    async def create_key(
        self,
        tenant_id: UUID,
        *,
        name: str,
        role: Role,
        workspace_id: UUID | None = None,
        expires_at: datetime | None = None,
    ) -> str:
        """The text of a new key. Raises TenantNotFound, TenantDeleting or KeyTargetMissing."""
        async with self.keys(tenant_id) as keys:
            _, text = await keys.create(KeyDraft(name, role, workspace_id, expires_at))
        return text

    async def list_keys(self, tenant_id: UUID) -> Sequence[ApiKey]:
        async with self.keys(tenant_id) as keys:
            return await keys.list()

    async def revoke_key(self, tenant_id: UUID, prefix: str) -> None:
        """Raises KeyNotFound; revoking twice changes nothing."""
        async with self.keys(tenant_id) as keys:
            await keys.revoke((await keys.find_by_prefix(prefix)).id)

    async def _set_status(self, tenant_id: UUID, status: str) -> Tenant:
        async with self._database.operator(tenant_id) as session:
            tenant = await _lock(session, tenant_id)
            refuse_deleting(tenant)
            tenant.status = status
            await session.flush()
            return tenant


async def _lock(session: TenantSession, tenant_id: UUID) -> Tenant:
    tenant = await TenantDirectory(session).lock(tenant_id)
    if tenant is None:
        raise TenantNotFound(f"There is no tenant {tenant_id}.", tenant_id=tenant_id)
    return tenant


def refuse_deleting(tenant: Tenant) -> None:
    if tenant.status == "deleting":
        raise TenantDeleting("This tenant is being deleted.", tenant_id=tenant.id)


def _exists(name: str) -> TenantExists:
    return TenantExists(f"A tenant named {name!r} exists already.")


def _is_current(key: StoredKey) -> bool:
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > key.read_at)


def is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
