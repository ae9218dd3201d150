"""Verifies API keys, and makes tenants and keys for operators."""

from datetime import datetime
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from app.db.base import TenantId, WorkspaceId
from app.db.models import ApiKey, Tenant
from app.db.session import Database
from app.domain.tenants.keys import PresentedKey, hash_secret, new_key, parse_key, secret_matches
from app.domain.tenants.records import Caller, Role, StoredKey
from app.domain.tenants.repository import KeyDirectory, KeyRepository, TenantDirectory
from app.errors import Conflict, Forbidden, NotFound, Unauthenticated


class InvalidApiKey(Unauthenticated):
    """One answer for a missing, malformed, unknown, expired or revoked key: it tells a stranger nothing."""

    code = "invalid_api_key"
    title = "The API key is not valid"


class TenantSuspended(Forbidden):
    code = "tenant_suspended"
    title = "The tenant is suspended"


class TenantNotFound(NotFound):
    code = "tenant_not_found"
    title = "Tenant not found"


class TenantExists(Conflict):
    code = "tenant_exists"
    title = "A tenant of this name exists"


class KeyTargetMissing(NotFound):
    code = "workspace_not_found"
    title = "Workspace not found"


class KeyNotFound(NotFound):
    code = "key_not_found"
    title = "API key not found"


class Authenticator:
    """Turns the text of a key into a caller."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def verify(self, text: str) -> Caller:
        """Raises InvalidApiKey, or TenantSuspended for a key that would be good."""
        # A malformed key is looked up like any other, so that it costs the same as one of an unknown prefix.
        presented = parse_key(text) or PresentedKey("", "")
        async with self._database.system() as session:
            stored = await KeyDirectory(session).find(presented.prefix)
        matches = secret_matches(presented.secret, stored.secret_hash if stored else None)
        if stored is None or not matches or not _is_current(stored):
            raise InvalidApiKey("Send a valid API key as `Authorization: Bearer trl_...`.")
        if stored.tenant_status != "active":
            raise TenantSuspended("This tenant is suspended; ask the operator of this installation.")
        workspace_id = WorkspaceId(stored.workspace_id) if stored.workspace_id else None
        return Caller(stored.id, TenantId(stored.tenant_id), Role(stored.role), workspace_id)


class TenantService:
    """Makes tenants and keys. Needs a database of the schema's owner, for the runtime role cannot write tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_tenant(self, name: str) -> Tenant:
        async with self._database.system() as session:
            tenants = TenantDirectory(session)
            if await tenants.find_by_name(name) is not None:
                raise TenantExists(f"A tenant named {name!r} exists already.")
            return await tenants.add(name)

    async def list_tenants(self) -> list[Tenant]:
        async with self._database.system() as session:
            return await TenantDirectory(session).list()

    async def get_tenant(self, name_or_id: str) -> Tenant:
        """Raises TenantNotFound."""
        async with self._database.system() as session:
            tenants = TenantDirectory(session)
            tenant = await tenants.find_by_name(name_or_id)
            if tenant is None and _is_uuid(name_or_id):
                tenant = await tenants.find(UUID(name_or_id))
        if tenant is None:
            raise TenantNotFound(f"There is no tenant {name_or_id!r}.")
        return tenant

    async def create_key(
        self,
        tenant_id: UUID,
        *,
        name: str,
        role: Role,
        workspace_id: UUID | None = None,
        expires_at: datetime | None = None,
    ) -> str:
        """The text of a new key. It is shown this once: only the hash of its secret is kept.

        Raises KeyTargetMissing if the tenant has no such workspace.
        """
        key = new_key()
        try:
            async with self._database.tenant(tenant_id) as session:
                await KeyRepository(session).add(
                    name=name,
                    prefix=key.prefix,
                    secret_hash=hash_secret(key.secret),
                    role=role,
                    workspace_id=workspace_id,
                    expires_at=expires_at,
                )
        except IntegrityError:
            raise KeyTargetMissing(f"This tenant has no workspace {workspace_id}.") from None
        return key.text

    async def list_keys(self, tenant_id: UUID) -> list[ApiKey]:
        async with self._database.tenant(tenant_id) as session:
            return await KeyRepository(session).list()

    async def revoke_key(self, tenant_id: UUID, prefix: str) -> None:
        """Raises KeyNotFound; revoking twice changes nothing."""
        async with self._database.tenant(tenant_id) as session:
            keys = KeyRepository(session)
            key = await keys.find_by_prefix(prefix)
            if key is None:
                raise KeyNotFound(f"This tenant has no key with the prefix {prefix!r}.")
            await keys.revoke(key.id)


def _is_current(key: StoredKey) -> bool:
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > key.read_at)


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
