"""The route of the audit log."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from app.api.deps import KeyBoundToWorkspace, RoleRequired, TenantAdmin, TenantUnit
from app.api.fields import NamePart
from app.api.pagination import Cursor, InvalidCursor, Limit, decode_number, encode_cursor
from app.api.problems import problems
from app.api.v1.audit.schemas import AuditEventRead, AuditPage
from app.domain.audit.repository import AuditFilter, AuditLog

router = APIRouter(prefix="/v1/audit", tags=["audit"])


@router.get("", summary="Read the audit log", responses=problems(RoleRequired, KeyBoundToWorkspace, InvalidCursor))
async def list_audit_events(
    _: TenantAdmin,
    session: TenantUnit,
    actor: Annotated[NamePart | None, Query(description="By whom: `key:<id>`, `user:<subject>` or `operator`.")] = None,
    kind: Annotated[NamePart | None, Query(description="Of what kind the changed thing is.")] = None,
    subject: Annotated[NamePart | None, Query(description="The id of the changed thing, or an entity's name.")] = None,
    since: Annotated[AwareDatetime | None, Query(description="From this time on; its time zone is part of it.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Before this time; its time zone is part of it.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> AuditPage:
    """What keys, users and operators changed in this tenant, newest first. Nobody can remove an event; what it quotes of a
    document goes with the document."""
    wanted = AuditFilter(actor, kind, subject, since, until)
    found = await AuditLog(session).list(wanted, before_id=decode_number(cursor), limit=limit + 1)
    page, rest = found[:limit], found[limit:]
    return AuditPage(
        items=[AuditEventRead.model_validate(event) for event in page],
        next_cursor=encode_cursor(str(page[-1].id)) if rest else None,
    )
