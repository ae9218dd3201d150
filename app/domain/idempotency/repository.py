"""Queries for kept answers. Times are the database's own."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, delete, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from app.db.models import IdempotencyKey
from app.db.session import SystemSession, TenantSession

FORGET = text("SELECT forget_idempotency_keys(:max_rows)")


@dataclass(frozen=True)
class Name:
    """What a key is looked up by: who sent it, the key, and method and path of the request."""

    caller: str
    key: str
    route: str


class IdempotencyRepository:
    def __init__(self, session: TenantSession) -> None:
        self._session = session

    async def claim(self, name: Name, owner: UUID, *, lease_seconds: float, keep_seconds: float) -> bool:
        """Take a name that is free, has expired, or whose owner has shown no sign of life for its lease."""
        now = func.clock_timestamp()
        fresh = {
            "owner": owner,
            "lease_expires_at": now + timedelta(seconds=lease_seconds),
            "expires_at": now + timedelta(seconds=keep_seconds),
        }
        abandoned = IdempotencyKey.status.is_(None) & (IdempotencyKey.lease_expires_at < now)
        statement = (
            insert(IdempotencyKey)
            .values(tenant_id=self._session.tenant_id, caller=name.caller, key=name.key, route=name.route, **fresh)
            .on_conflict_do_update(
                index_elements=["tenant_id", "caller", "key", "route"],
                set_={**fresh, "fingerprint": None, "status": None, "headers": None, "body_encrypted": None},
                where=or_(IdempotencyKey.expires_at < now, abandoned),
            )
            .returning(IdempotencyKey.owner)
        )
        return await self._session.scalar(statement) is not None

    async def find(self, name: Name) -> Row[Any] | None:
        """(fingerprint, status, headers, body_encrypted); the status is None while the request is under way."""
        query = select(
            IdempotencyKey.fingerprint, IdempotencyKey.status, IdempotencyKey.headers, IdempotencyKey.body_encrypted
        ).where(
            IdempotencyKey.tenant_id == self._session.tenant_id,
            IdempotencyKey.caller == name.caller,
            IdempotencyKey.key == name.key,
            IdempotencyKey.route == name.route,
        )
        return (await self._session.execute(query)).one_or_none()

    async def extend(self, owner: UUID, lease_seconds: float) -> None:
        expires_at = func.clock_timestamp() + timedelta(seconds=lease_seconds)
        await self._session.execute(
            update(IdempotencyKey).where(*self._open(owner)).values(lease_expires_at=expires_at)
        )

    async def finish(self, owner: UUID, **answer: Any) -> None:
        await self._session.execute(update(IdempotencyKey).where(*self._open(owner)).values(**answer))

    async def release(self, owner: UUID) -> None:
        await self._session.execute(delete(IdempotencyKey).where(*self._open(owner)))

    def _open(self, owner: UUID) -> tuple[ColumnElement[bool], ...]:
        return (
            IdempotencyKey.tenant_id == self._session.tenant_id,
            IdempotencyKey.owner == owner,
            IdempotencyKey.status.is_(None),
        )


async def forget_expired(session: SystemSession, max_rows: int) -> int:
    """Remove answers of all tenants that have been kept for their time; how many."""
    return int(await session.scalar(FORGET, {"max_rows": max_rows}) or 0)
