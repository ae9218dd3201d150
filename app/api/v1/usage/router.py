"""The route of usage."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from app.api.deps import ReaderCaller, TenantUnit
from app.api.problems import problems
from app.api.v1.usage.schemas import GroupBy, UsageReport
from app.domain.limits.repository import LimitsRepository
from app.domain.usage.repository import UsageFilter, UsageLedger
from app.domain.workspaces.errors import WorkspaceNotFound

router = APIRouter(prefix="/v1/usage", tags=["usage"])


@router.get("", summary="Read what was used", responses=problems(WorkspaceNotFound))
async def read_usage(
    caller: ReaderCaller,
    session: TenantUnit,
    group_by: Annotated[GroupBy, Query(description="What to sum by.")] = "day",
    workspace_id: Annotated[UUID | None, Query(description="Of this workspace only.")] = None,
    document_id: Annotated[UUID | None, Query(description="Of this document only.")] = None,
    query_id: Annotated[UUID | None, Query(description="Of this query only.")] = None,
    since: Annotated[AwareDatetime | None, Query(description="From this time on; its time zone is part of it.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Before this time; its time zone is part of it.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many sums at most.")] = 100,
) -> UsageReport:
    """Model calls, tokens and money, and what of the plan is used. A key bound to a workspace sees only that one's."""
    if workspace_id is not None and not caller.may_see(workspace_id):
        raise WorkspaceNotFound.of(workspace_id)
    wanted = UsageFilter(workspace_id or caller.workspace_id, document_id, query_id, since, until)
    ledger = UsageLedger(session)
    [total] = await ledger.sums(wanted, None, limit=1)
    items = await ledger.sums(wanted, group_by, limit=limit)
    standing = await LimitsRepository(session).standing() if caller.workspace_id is None else None
    return UsageReport.of(total, list(items), standing)
