"""Queries for tenants and API keys. Tenants are written by the operator's command line, as the schema's owner."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select, text, update

from app.db.models import ApiKey, Tenant
from app.db.repository import TenantRepository
from app.db.session import SystemSession
from app.domain.tenants.records import StoredKey

FIND_KEY = text(
    "SELECT id, tenant_id, tenant_status, workspace_id, role, secret_hash, expires_at, revoked_at, now() AS read_at"
    "  FROM find_api_key(:prefix)"
)


class KeyDirectory:
    """Looks keys up before their tenant is known, through the one function that may."""

    def __init__(self, session: SystemSession) -> None:
        self.session = session

    async def find(self, prefix: str) -> StoredKey | None:
        row = (await self.session.execute(FIND_KEY, {"prefix": prefix})).mappings().one_or_none()
        return StoredKey(**row) if row is not None else None


class TenantDirectory:
    """Tenants, for operators; needs a session of the schema's owner."""

    def __init__(self, session: SystemSession) -> None:
        self.session = session

    async def find_by_name(self, name: str) -> Tenant | None:
        return await self.session.scalar(select(Tenant).where(Tenant.name == name))

    async def find(self, tenant_id: UUID) -> Tenant | None:
        return await self.session.get(Tenant, tenant_id)

    async def list(self) -> list[Tenant]:
        return list(await self.session.scalars(select(Tenant).order_by(Tenant.created_at, Tenant.id)))

    async def add(self, name: str) -> Tenant:
        tenant = Tenant(name=name)
        self.session.add(tenant)
        await self.session.flush()
        return tenant


class KeyRepository(TenantRepository):
    """The API keys of one tenant."""

    async def tenant_name(self) -> str:
        return (await self.session.scalars(select(Tenant.name).where(Tenant.id == self.session.tenant_id))).one()

    async def list(self) -> list[ApiKey]:
        return list(await self.session.scalars(self.rows(ApiKey).order_by(ApiKey.created_at, ApiKey.id)))

    async def find_by_prefix(self, prefix: str) -> ApiKey | None:
        return await self.session.scalar(self.rows(ApiKey, ApiKey.prefix == prefix))

    async def add(
        self, *, name: str, prefix: str, secret_hash: bytes, role: str, workspace_id: UUID | None,
        expires_at: datetime | None,
    ) -> ApiKey:  # fmt: skip
        key = ApiKey(
            tenant_id=self.session.tenant_id, name=name, prefix=prefix, secret_hash=secret_hash, role=role,
            workspace_id=workspace_id, expires_at=expires_at,
        )  # fmt: skip
        self.session.add(key)
        await self.session.flush()
        return key

    async def revoke(self, key_id: UUID) -> None:
        await self.session.execute(
            update(ApiKey)
            .where(ApiKey.tenant_id == self.session.tenant_id, ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
            .values(revoked_at=func.now())
        )
