"""Routes that merge entities, tell what was changed, and undo it."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import AfterValidator

from app.api.deps import AdminCaller, ReaderCaller, RoleRequired, WorkspaceDep
from app.api.pagination import Cursor, InvalidCursor, Limit, decode_number, encode_cursor
from app.api.problems import problems
from app.api.v1.entities.change_schemas import (
    MERGE_EXAMPLES,
    ChangePage,
    ChangeRead,
    EntityMerge,
    MergedEntity,
    MergePreviewRead,
)
from app.api.v1.entities.names import ChangesDep, RequestedDep
from app.api.v1.entities.schemas import MAX_NAME_CHARS
from app.domain.entities.changes import Merged, PreviewTooLarge
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.domain.workspaces.settings import without_binary
from app.retrieval.contract import EngineOff, GraphWriteFailed, WorkspaceBusy
from app.retrieval.entity_contract import (
    ChangeNotFound,
    EntityNotFound,
    InvalidMerge,
    RemovedWithDocuments,
    UndoBlocked,
)

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/entities", tags=["entities"])
QUEUED: dict[int | str, dict[str, Any]] = {
    202: {"model": ChangeRead, "description": "It touches many relations and is left to a worker."}
}

MERGED: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {"examples": MERGE_EXAMPLES}}}}


@router.post(
    "/merge",
    summary="Merge entities",
    responses=problems(
        RoleRequired, WorkspaceNotFound, WorkspaceDeleting, EngineOff, EntityNotFound, InvalidMerge,
        PreviewTooLarge, WorkspaceBusy, GraphWriteFailed,
    ) | QUEUED | MERGED,
)  # fmt: skip
async def merge_entities(
    workspace_id: WorkspaceDep,
    merge: EntityMerge,
    caller: AdminCaller,
    changes: ChangesDep,
    by: RequestedDep,
    response: Response,
) -> MergedEntity | MergePreviewRead | ChangeRead:
    """Makes several entities one. It waits a little for other writes of the workspace, then says that it is busy."""
    if merge.dry_run:
        return MergePreviewRead.of(await changes.preview(caller.tenant_id, workspace_id, merge.request()))
    made = await changes.merge(caller.tenant_id, workspace_id, merge.request(), by)
    if isinstance(made, Merged):
        return MergedEntity.of_merge(made)
    if made.state == "queued":
        response.status_code = 202
    return ChangeRead.of(made)


@router.get(
    "/changes",
    summary="List changes of entities",
    responses=problems(WorkspaceNotFound, WorkspaceDeleting, EngineOff, InvalidCursor),
)
async def list_changes(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    changes: ChangesDep,
    name: Annotated[
        str | None,
        Query(min_length=1, max_length=MAX_NAME_CHARS, description="Of this entity, by any of its names."),
        AfterValidator(lambda value: value and without_binary(value)),
    ] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> ChangePage:
    """What people did to entities and relations, newest first."""
    found = await changes.list(caller.tenant_id, workspace_id, name=name, before=decode_number(cursor), limit=limit + 1)
    page, rest = found[:limit], found[limit:]
    return ChangePage(
        items=[ChangeRead.of(change) for change in page],
        next_cursor=encode_cursor(str(page[-1].number)) if rest else None,
    )


@router.get(
    "/changes/{change_id}",
    summary="Read a change",
    responses=problems(WorkspaceNotFound, ChangeNotFound),
)
async def read_change(
    workspace_id: WorkspaceDep, change_id: UUID, caller: ReaderCaller, changes: ChangesDep
) -> ChangeRead:
    """Its state, and why it failed."""
    return ChangeRead.of(await changes.get(caller.tenant_id, workspace_id, change_id))


@router.post(
    "/changes/{change_id}/undo",
    summary="Undo a merge or a split",
    responses=problems(
        RoleRequired, WorkspaceNotFound, WorkspaceDeleting, EngineOff, ChangeNotFound, UndoBlocked, RemovedWithDocuments,
        WorkspaceBusy, GraphWriteFailed,
    ) | QUEUED,
)  # fmt: skip
async def undo_change(
    workspace_id: WorkspaceDep,
    change_id: UUID,
    caller: AdminCaller,
    changes: ChangesDep,
    by: RequestedDep,
    response: Response,
) -> ChangeRead:
    """Makes the graph what it would be without the change, later documents included; edits are kept."""
    made = await changes.undo(caller.tenant_id, workspace_id, change_id, by)
    if made.state == "queued":
        response.status_code = 202
    return ChangeRead.of(made)
