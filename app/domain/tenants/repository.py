"""Queries for tenants and API keys. Tenants are written by operators only."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import delete, func, select, text, tuple_, update

from app.db.models import ApiKey, Plan, Tenant, Workspace
from app.db.repository import TenantRepository
from app.db.session import SystemSession
from app.domain.tenants.records import KeyDraft, StoredKey

FIND_KEY = text(
    "SELECT id, tenant_id, tenant_status, workspace_id, role, secret_hash, expires_at, revoked_at, last_used_at,"
    " requests_per_minute,"
    " now() AS read_at"
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
    """The table of tenants, for operators; needs an operator's session."""

    def __init__(self, session: SystemSession) -> None:
        self.session = session

    async def find_by_name(self, name: str) -> Tenant | None:
        return await self.session.scalar(select(Tenant).where(Tenant.name == name))

    async def find(self, tenant_id: UUID) -> Tenant | None:
        return await self.session.get(Tenant, tenant_id)

    async def lock(self, tenant_id: UUID) -> Tenant | None:
        """For a change: concurrent ones wait for each other."""
        query = select(Tenant).where(Tenant.id == tenant_id).with_for_update(key_share=True)
        return await self.session.scalar(query)

    async def list(self, *, after: tuple[datetime, UUID] | None = None, limit: int | None = None) -> list[Tenant]:
        """In order of creation, from the first after `after`."""
        query = select(Tenant).order_by(Tenant.created_at, Tenant.id).limit(limit)
        if after is not None:
            query = query.where(tuple_(Tenant.created_at, Tenant.id) > tuple_(*after))
        return list(await self.session.scalars(query))

    async def add(self, name: str) -> Tenant:
        tenant = Tenant(name=name)
        self.session.add(tenant)
        await self.session.flush()
        return tenant

    async def remove(self, tenant_id: UUID) -> None:
        """The row, and with it what refers to the tenant itself: keys, usage and the audit log."""
        await self.session.execute(delete(Tenant).where(Tenant.id == tenant_id))


class KeyRepository(TenantRepository):
    """The API keys of one tenant."""

    async def tenant_name(self) -> str:
        return (await self.session.scalars(select(Tenant.name).where(Tenant.id == self.session.tenant_id))).one()

    async def tenant_status(self) -> tuple[str, int | None] | None:
        """Status and requests a minute; None if there is no such tenant."""
        query = (
            select(Tenant.status, Plan.requests_per_minute)
            .outerjoin(Plan, Plan.name == Tenant.plan)
            .where(Tenant.id == self.session.tenant_id)
        )
        row = (await self.session.execute(query)).one_or_none()
        return (row[0], row[1]) if row is not None else None

    async def list(self, *, after: tuple[datetime, UUID] | None = None, limit: int | None = None) -> list[ApiKey]:
        """In order of creation, from the first after `after`."""
        query = self.rows(ApiKey).order_by(ApiKey.created_at, ApiKey.id).limit(limit)
        if after is not None:
            query = query.where(tuple_(ApiKey.created_at, ApiKey.id) > tuple_(*after))
        return list(await self.session.scalars(query))

    async def find(self, key_id: UUID) -> ApiKey | None:
        return await self.session.scalar(self.rows(ApiKey, ApiKey.id == key_id))

    async def lock(self, key_id: UUID) -> ApiKey | None:
        """For a change: two rotations of one key must not both give out a new one."""
        return await self.session.scalar(self.rows(ApiKey, ApiKey.id == key_id).with_for_update())

    async def find_by_prefix(self, prefix: str) -> ApiKey | None:
        return await self.session.scalar(self.rows(ApiKey, ApiKey.prefix == prefix))

    async def add(self, draft: KeyDraft, *, prefix: str, secret_hash: bytes) -> ApiKey:
        key = ApiKey(
            tenant_id=self.session.tenant_id, name=draft.name, prefix=prefix, secret_hash=secret_hash, role=draft.role,
            workspace_id=draft.workspace_id, expires_at=draft.expires_at,
        )  # fmt: skip
        self.session.add(key)
        await self.session.flush()
        return key

    async def has_workspace(self, workspace_id: UUID) -> bool:
        return await self.session.scalar(self.rows(Workspace, Workspace.id == workspace_id)) is not None

    async def revoke(self, key_id: UUID) -> None:
        await self.session.execute(
            update(ApiKey)
            .where(ApiKey.tenant_id == self.session.tenant_id, ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
            .values(revoked_at=func.now())
        )

    async def revoke_all(self) -> None:
        await self.session.execute(
            update(ApiKey)
            .where(ApiKey.tenant_id == self.session.tenant_id, ApiKey.revoked_at.is_(None))
            .values(revoked_at=func.now())
        )

    async def note_use(self, key_id: UUID, *, unless_within: timedelta) -> None:
        """Write down that the key is in use, unless that was done not long ago; nobody waits for a lock for this."""
        free = (
            select(ApiKey.id)
            .where(
                ApiKey.tenant_id == self.session.tenant_id,
                ApiKey.id == key_id,
                ApiKey.last_used_at.is_(None) | (ApiKey.last_used_at < func.now() - unless_within),
            )
            .with_for_update(skip_locked=True)
        )
        await self.session.execute(
            update(ApiKey)
            .where(ApiKey.tenant_id == self.session.tenant_id, ApiKey.id.in_(free))
            .values(last_used_at=func.now())
            .execution_options(synchronize_session=False)
        )
