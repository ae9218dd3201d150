"""Routes for operators: the same that `trellis tenant` and `trellis key` do, behind the operator's secret."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends

from app.api.deps import OPERATOR, ContainerDep, refuse_unknown_query
from app.api.pagination import Cursor, InvalidCursor, Limit, decode_position, encode_position
from app.api.problems import operator_problems
from app.api.v1.admin.schemas import DeletionRead, TenantCreate, TenantPage, TenantRead
from app.api.v1.keys.router import page_of
from app.api.v1.keys.schemas import KeyCreate, KeyCreated, KeyPage, KeyRead, KeyRotate
from app.domain.tenants.errors import TenantNotFound
from app.domain.tenants.key_service import KeyNotFound, KeyNotInUse, KeyTargetMissing
from app.domain.tenants.service import TenantDeleting, TenantExists, TenantService

router = APIRouter(
    prefix="/v1/admin/tenants", tags=["operators"], dependencies=[Depends(OPERATOR), Depends(refuse_unknown_query)]
)
TENANT = "/{tenant_id}"
KEYS = f"{TENANT}/keys"


async def tenant_service(container: ContainerDep) -> TenantService:
    return TenantService(container.database)


ServiceDep = Annotated[TenantService, Depends(tenant_service)]


@router.post("", status_code=201, summary="Create a tenant", responses=operator_problems(TenantExists))
async def create_tenant(wanted: TenantCreate, tenants: ServiceDep) -> TenantRead:
    """Give it a key next."""
    return TenantRead.model_validate(await tenants.create_tenant(wanted.name))


@router.get("", summary="List tenants", responses=operator_problems(InvalidCursor))
async def list_tenants(tenants: ServiceDep, cursor: Cursor = None, limit: Limit = 50) -> TenantPage:
    """In order of creation."""
    found = await tenants.list_tenants(after=decode_position(cursor), limit=limit + 1)
    page, rest = found[:limit], found[limit:]
    return TenantPage(
        items=[TenantRead.model_validate(row) for row in page],
        next_cursor=encode_position(page[-1].created_at, page[-1].id) if rest else None,
    )


@router.get(TENANT, summary="Read a tenant", responses=operator_problems(TenantNotFound))
async def read_tenant(tenant_id: UUID, tenants: ServiceDep) -> TenantRead:
    """Its name and whether it is active."""
    return TenantRead.model_validate(await tenants.get_tenant(str(tenant_id)))


@router.post(
    TENANT + "/suspend", summary="Suspend a tenant", responses=operator_problems(TenantNotFound, TenantDeleting)
)
async def suspend_tenant(tenant_id: UUID, tenants: ServiceDep) -> TenantRead:
    """Its keys answer `tenant_suspended` and its queued work waits, uncounted. What is running ends."""
    return TenantRead.model_validate(await tenants.suspend(tenant_id))


@router.post(TENANT + "/resume", summary="Resume a tenant", responses=operator_problems(TenantNotFound, TenantDeleting))
async def resume_tenant(tenant_id: UUID, tenants: ServiceDep) -> TenantRead:
    """Its keys work again, and what has waited goes on within a sweep."""
    return TenantRead.model_validate(await tenants.resume(tenant_id))


@router.delete(TENANT, status_code=202, summary="Delete a tenant", responses=operator_problems(TenantNotFound))
async def delete_tenant(tenant_id: UUID, tenants: ServiceDep) -> DeletionRead:
    """Together with all it has, in the background. Its keys are void at once. It cannot be undone."""
    return DeletionRead.model_validate(await tenants.delete(tenant_id))


@router.get(TENANT + "/deletion", summary="Follow a deletion", responses=operator_problems(TenantNotFound))
async def read_deletion(tenant_id: UUID, tenants: ServiceDep) -> DeletionRead:
    """What is left, and in the end the proof: every table counted, all 0."""
    return DeletionRead.model_validate(await tenants.deletion(tenant_id))


@router.get(
    KEYS, summary="List a tenant's keys", responses=operator_problems(TenantNotFound, TenantDeleting, InvalidCursor)
)
async def list_tenant_keys(tenant_id: UUID, tenants: ServiceDep, cursor: Cursor = None, limit: Limit = 50) -> KeyPage:
    """Without their secrets."""
    after = decode_position(cursor)
    async with tenants.keys(tenant_id) as keys:
        return page_of(await keys.list(after=after, limit=limit + 1), limit)


@router.post(
    KEYS,
    status_code=201,
    summary="Create a key of a tenant",
    responses=operator_problems(TenantNotFound, TenantDeleting, KeyTargetMissing),
)
async def create_tenant_key(tenant_id: UUID, wanted: KeyCreate, tenants: ServiceDep) -> KeyCreated:
    """The answer holds the key, this once."""
    async with tenants.keys(tenant_id) as keys:
        return KeyCreated.made(*await keys.create(wanted.draft()))


@router.delete(
    KEYS + "/{key_id}",
    summary="Revoke a key of a tenant",
    responses=operator_problems(TenantNotFound, TenantDeleting, KeyNotFound),
)
async def revoke_tenant_key(tenant_id: UUID, key_id: UUID, tenants: ServiceDep) -> KeyRead:
    """It stops working with the next request."""
    async with tenants.keys(tenant_id) as keys:
        return KeyRead.model_validate(await keys.revoke(key_id))


@router.post(
    KEYS + "/{key_id}/rotate",
    status_code=201,
    summary="Replace a key of a tenant",
    responses=operator_problems(TenantNotFound, TenantDeleting, KeyNotFound, KeyNotInUse),
)
async def rotate_tenant_key(tenant_id: UUID, key_id: UUID, wanted: KeyRotate, tenants: ServiceDep) -> KeyCreated:
    """A new key with the same rights. The old one ends at once, or after `overlap_seconds`."""
    async with tenants.keys(tenant_id) as keys:
        return KeyCreated.made(*await keys.rotate(key_id, overlap=timedelta(seconds=wanted.overlap_seconds)))
