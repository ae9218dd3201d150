"""Routes of duplicates: groups that may be one entity, what people decided about them, and merging the surest."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from app.api.deps import AdminCaller, ContainerDep, EditorCaller, ReaderCaller, RoleRequired, WorkspaceDep
from app.api.problems import problems
from app.api.v1.entities.duplicate_schemas import (
    Acceptance,
    DecidedPair,
    DecidedPairs,
    DuplicateGroups,
    DuplicatesMerge,
    DuplicatesMerged,
    GroupOutcome,
)
from app.api.v1.entities.editing import EndInQuery, OtherEndInQuery
from app.api.v1.entities.names import RequestedDep
from app.domain.entities.decisions_repository import InvalidDecision, TooManyDecisions
from app.domain.entities.duplicates import EntityDuplicates
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.retrieval.contract import EngineOff, GraphWriteFailed, WorkspaceBusy
from app.retrieval.entity_contract import EntityNotFound
from app.text.duplicates.likeness import PROPOSED

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/entities/duplicates", tags=["entities"])
READ = (WorkspaceNotFound, WorkspaceDeleting, EngineOff)


async def entity_duplicates(container: ContainerDep) -> EntityDuplicates:
    return container.entity_duplicates()


DuplicatesDep = Annotated[EntityDuplicates, Depends(entity_duplicates)]


@router.get("", summary="Propose duplicates", responses=problems(*READ))
async def list_duplicates(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    duplicates: DuplicatesDep,
    min_score: Annotated[float, Query(ge=PROPOSED, le=1, description="Of the best pair of a group.")] = PROPOSED,
    limit: Annotated[int, Query(ge=1, le=200, description="Groups at most.")] = 50,
) -> DuplicateGroups:
    """Entities that may be one, with the reasons. Merge, accept or reject them; a rejected pair is not proposed again."""
    found = await duplicates.propose((caller.tenant_id, workspace_id), min_score=min_score, limit=limit)
    return DuplicateGroups.of(list(found))


@router.post(
    "/merge",
    summary="Merge the surest duplicates",
    responses=problems(RoleRequired, *READ, WorkspaceBusy, GraphWriteFailed),
)
async def merge_duplicates(
    workspace_id: WorkspaceDep, merge: DuplicatesMerge, caller: AdminCaller, duplicates: DuplicatesDep, by: RequestedDep
) -> DuplicatesMerged:
    """Without anybody looking at them. Each merge is a change of its own and can be undone; each group has its outcome."""
    place = caller.tenant_id, workspace_id
    made = await duplicates.merge(place, by, min_score=merge.min_score, limit=merge.limit)
    return DuplicatesMerged(items=[GroupOutcome.of(each) for each in made])


DECIDED = problems(RoleRequired, *READ, EntityNotFound, InvalidDecision, TooManyDecisions)


@router.get("/acceptances", summary="List accepted pairs", responses=problems(*READ))
async def list_acceptances(workspace_id: WorkspaceDep, caller: ReaderCaller, duplicates: DuplicatesDep) -> DecidedPairs:
    """Entities that are one thing, as somebody decided, under the names that they had then."""
    return DecidedPairs.of(await duplicates.decided((caller.tenant_id, workspace_id), is_same=True))


@router.post("/acceptances", status_code=201, summary="Accept a group", responses=DECIDED)
async def accept_group(
    workspace_id: WorkspaceDep, acceptance: Acceptance, caller: EditorCaller, duplicates: DuplicatesDep
) -> Acceptance:
    """They are one thing: remembered, but merged only by a later request, which whoever may merge can make for all."""
    names = await duplicates.decide((caller.tenant_id, workspace_id), acceptance.names, is_same=True)
    return Acceptance(names=list(names))


@router.delete(
    "/acceptances", status_code=204, summary="Take an acceptance back", responses=problems(RoleRequired, *READ)
)
async def forget_acceptance(
    workspace_id: WorkspaceDep,
    caller: EditorCaller,
    duplicates: DuplicatesDep,
    one: EndInQuery,
    other: OtherEndInQuery,
) -> None:
    """As if nobody had decided."""
    await duplicates.forget((caller.tenant_id, workspace_id), one, other, is_same=True)


@router.get("/rejections", summary="List rejected pairs", responses=problems(*READ))
async def list_rejections(workspace_id: WorkspaceDep, caller: ReaderCaller, duplicates: DuplicatesDep) -> DecidedPairs:
    """Entities that are different things, as somebody decided, under the names that they had then."""
    return DecidedPairs.of(await duplicates.decided((caller.tenant_id, workspace_id), is_same=False))


@router.post("/rejections", status_code=201, summary="Reject a pair", responses=DECIDED)
async def reject_pair(
    workspace_id: WorkspaceDep, rejection: DecidedPair, caller: EditorCaller, duplicates: DuplicatesDep
) -> DecidedPair:
    """They are different things, and stand in no group together from now on, whatever they are merged into later."""
    pair = rejection.one, rejection.other
    one, other = await duplicates.decide((caller.tenant_id, workspace_id), pair, is_same=False)
    return DecidedPair(one=one, other=other)


@router.delete("/rejections", status_code=204, summary="Take a rejection back", responses=problems(RoleRequired, *READ))
async def forget_rejection(
    workspace_id: WorkspaceDep,
    caller: EditorCaller,
    duplicates: DuplicatesDep,
    one: EndInQuery,
    other: OtherEndInQuery,
) -> None:
    """They may be proposed again."""
    await duplicates.forget((caller.tenant_id, workspace_id), one, other, is_same=False)
