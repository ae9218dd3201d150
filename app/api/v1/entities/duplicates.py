"""Routes of duplicates: groups that may be one entity, what people decided about them, and merging the surest."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.deps import AdminCaller, EditorCaller, ReaderCaller, RoleRequired, WorkspaceDep
from app.api.problems import problems
from app.api.v1.entities.editing import EndInQuery, OtherEndInQuery
from app.api.v1.entities.graph import LookingDep
from app.api.v1.entities.graph_schemas import (
    DuplicateGroups,
    DuplicatesMerge,
    DuplicatesMerged,
    GroupOutcome,
    Rejection,
    Rejections,
)
from app.api.v1.entities.names import RequestedDep
from app.domain.entities.rejections_repository import InvalidRejection, TooManyRejections
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.retrieval.contract import EngineOff, GraphWriteFailed, WorkspaceBusy
from app.retrieval.entity_contract import EntityNotFound
from app.text.duplicates.likeness import PROPOSED

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/entities/duplicates", tags=["entities"])
READ = (WorkspaceNotFound, WorkspaceDeleting, EngineOff)


@router.get("", summary="Propose duplicates", responses=problems(*READ))
async def list_duplicates(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    looking: LookingDep,
    min_score: Annotated[float, Query(ge=PROPOSED, le=1, description="Of the best pair of a group.")] = PROPOSED,
    limit: Annotated[int, Query(ge=1, le=200, description="Groups at most.")] = 50,
) -> DuplicateGroups:
    """Entities that may be one, with the reasons. Accept a group by merging it; a rejected pair is not proposed again."""
    found = await looking.duplicates((caller.tenant_id, workspace_id), min_score=min_score, limit=limit)
    return DuplicateGroups.of(list(found))


@router.post(
    "/merge",
    summary="Merge the surest duplicates",
    responses=problems(RoleRequired, *READ, WorkspaceBusy, GraphWriteFailed),
)
async def merge_duplicates(
    workspace_id: WorkspaceDep, merge: DuplicatesMerge, caller: AdminCaller, looking: LookingDep, by: RequestedDep
) -> DuplicatesMerged:
    """Without anybody looking at them. Each merge is a change of its own and can be undone; each group has its outcome."""
    place = caller.tenant_id, workspace_id
    made = await looking.merge_duplicates(place, by, min_score=merge.min_score, limit=merge.limit)
    return DuplicatesMerged(items=[GroupOutcome.of(each) for each in made])


@router.get("/rejections", summary="List rejected pairs", responses=problems(*READ))
async def list_rejections(workspace_id: WorkspaceDep, caller: ReaderCaller, looking: LookingDep) -> Rejections:
    """Entities that are different things, as somebody decided."""
    pairs = await looking.rejected((caller.tenant_id, workspace_id))
    return Rejections(items=[Rejection(one=one, other=other) for one, other in pairs])


@router.post(
    "/rejections",
    status_code=201,
    summary="Reject a pair",
    responses=problems(RoleRequired, *READ, EntityNotFound, InvalidRejection, TooManyRejections),
)
async def reject_pair(
    workspace_id: WorkspaceDep, rejection: Rejection, caller: EditorCaller, looking: LookingDep
) -> Rejection:
    """They are different things, and stand in no group together from now on."""
    one, other = await looking.reject((caller.tenant_id, workspace_id), rejection.one, rejection.other)
    return Rejection(one=one, other=other)


@router.delete("/rejections", status_code=204, summary="Take a rejection back", responses=problems(RoleRequired, *READ))
async def forget_rejection(
    workspace_id: WorkspaceDep, caller: EditorCaller, looking: LookingDep, one: EndInQuery, other: OtherEndInQuery
) -> None:
    """They may be proposed again."""
    await looking.forget_rejection((caller.tenant_id, workspace_id), one, other)
