"""The route that puts one question to several modes."""

from fastapi import APIRouter, Request

from app.api.connected import while_connected
from app.api.deps import ContainerDep, ReaderCaller, WorkspaceDep
from app.api.idempotency import READS_ONLY
from app.api.problems import problems
from app.api.v1.queries.comparing_schemas import ComparisonQuery, ComparisonRead
from app.domain.queries.comparing import compare_modes
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.retrieval.contract import UnknownMode

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/queries", tags=["queries"])


@router.post(
    "/compare",
    summary="Compare modes on one question",
    openapi_extra=READS_ONLY,
    responses=problems(WorkspaceNotFound, WorkspaceDeleting, UnknownMode),
)
async def compare(
    workspace_id: WorkspaceDep, asked: ComparisonQuery, caller: ReaderCaller, container: ContainerDep, request: Request
) -> ComparisonRead:
    """Side by side: what each mode found, how long it took, and how much of it is the same. A mode that is refused or
    fails says why, beside the answers of the others. `timeout_ms` is for all of them together: each may take an equal part
    of what is left."""
    work = compare_modes(container.queries(), caller.tenant_id, workspace_id, asked.question(), asked.modes)
    found = await while_connected(request, work)
    return ComparisonRead.of(found)
