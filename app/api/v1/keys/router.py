"""Routes of a tenant's own API keys."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends

from app.api.deps import KeyBoundToWorkspace, RoleRequired, TenantAdmin, TenantUnit
from app.api.pagination import Cursor, InvalidCursor, Limit, decode_position, encode_position
from app.api.problems import problems
from app.api.v1.keys.schemas import KeyCreate, KeyCreated, KeyPage, KeyRead, KeyRotate
from app.db.models import ApiKey
from app.domain.tenants.key_service import KeyNotFound, KeyNotInUse, KeyService, KeyTargetMissing

router = APIRouter(prefix="/v1/keys", tags=["keys"])


async def key_service(session: TenantUnit) -> KeyService:
    return KeyService(session)


ServiceDep = Annotated[KeyService, Depends(key_service)]


@router.get("", summary="List API keys", responses=problems(RoleRequired, KeyBoundToWorkspace, InvalidCursor))
async def list_keys(_: TenantAdmin, keys: ServiceDep, cursor: Cursor = None, limit: Limit = 50) -> KeyPage:
    """In order of creation, the revoked and expired ones too. Secrets are not stored and so not shown."""
    found = await keys.list(after=decode_position(cursor), limit=limit + 1)
    return page_of(found, limit)


@router.post(
    "",
    status_code=201,
    summary="Create an API key",
    responses=problems(RoleRequired, KeyBoundToWorkspace, KeyTargetMissing),
)
async def create_key(wanted: KeyCreate, _: TenantAdmin, keys: ServiceDep) -> KeyCreated:
    """The answer holds the key, this once."""
    return KeyCreated.made(*await keys.create(wanted.draft()))


@router.delete(
    "/{key_id}", summary="Revoke an API key", responses=problems(RoleRequired, KeyBoundToWorkspace, KeyNotFound)
)
async def revoke_key(key_id: UUID, _: TenantAdmin, keys: ServiceDep) -> KeyRead:
    """It stops working with the next request, and stays in the list. A key may revoke itself."""
    return KeyRead.model_validate(await keys.revoke(key_id))


@router.post(
    "/{key_id}/rotate",
    status_code=201,
    summary="Replace an API key",
    responses=problems(RoleRequired, KeyBoundToWorkspace, KeyNotFound, KeyNotInUse),
)
async def rotate_key(key_id: UUID, wanted: KeyRotate, _: TenantAdmin, keys: ServiceDep) -> KeyCreated:
    """A new key with the same name, rights and expiry. The old one ends at once, or after `overlap_seconds`."""
    return KeyCreated.made(*await keys.rotate(key_id, overlap=timedelta(seconds=wanted.overlap_seconds)))


def page_of(found: Sequence[ApiKey], limit: int) -> KeyPage:
    """The page of `found`, which has one row more than `limit` where there is another page."""
    page, rest = found[:limit], found[limit:]
    return KeyPage(
        items=[KeyRead.model_validate(row) for row in page],
        next_cursor=encode_position(page[-1].created_at, page[-1].id) if rest else None,
    )
