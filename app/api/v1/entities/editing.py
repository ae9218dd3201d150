"""Routes that create, edit and delete entities and relations by hand."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import AfterValidator

from app.api.deps import AdminCaller, ContainerDep, EditorCaller, ReaderCaller, RoleRequired, WorkspaceDep
from app.api.problems import problems
from app.api.v1.entities.change_schemas import ChangeRead
from app.api.v1.entities.changes import QUEUED
from app.api.v1.entities.edit_schemas import (
    SPLIT_EXAMPLE,
    EntityCreate,
    EntityEdit,
    EntitySplit,
    RelationCreate,
    RelationEdit,
    RelationRead,
    SplitRead,
)
from app.api.v1.entities.names import ChangesDep, NameInQuery, RequestedDep
from app.api.v1.entities.schemas import MAX_NAME_CHARS, EntityRead
from app.domain.entities.changes import Split
from app.domain.entities.editing import EntityEditing
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.domain.workspaces.settings import without_binary
from app.retrieval.contract import EngineOff, GraphWriteFailed, WorkspaceBusy
from app.retrieval.entity_contract import EntityNotFound, UndoBlocked
from app.retrieval.entity_edit_contract import EntityExists, InvalidEntity, RelationExists, RelationNotFound

router = APIRouter(prefix="/v1/workspaces/{workspace_id}", tags=["entities"])
READ = (WorkspaceNotFound, WorkspaceDeleting, EngineOff)
WRITE = (RoleRequired, *READ, WorkspaceBusy, GraphWriteFailed)
SPLIT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"examples": {"split": {"value": SPLIT_EXAMPLE}}}}}
}
EndInQuery = Annotated[
    str,
    Query(min_length=1, max_length=MAX_NAME_CHARS, description="Any name of an entity, whole.", examples=["Press 4"]),
    AfterValidator(without_binary),
]
OtherEndInQuery = Annotated[
    str,
    Query(min_length=1, max_length=MAX_NAME_CHARS, description="Any name of the other one.", examples=["Hall B"]),
    AfterValidator(without_binary),
]


async def entity_editing(container: ContainerDep) -> EntityEditing:
    return container.entity_editing()


EditingDep = Annotated[EntityEditing, Depends(entity_editing)]


@router.post(
    "/entities", status_code=201, summary="Create an entity", responses=problems(*WRITE, InvalidEntity, EntityExists)
)
async def create_entity(
    workspace_id: WorkspaceDep, entity: EntityCreate, caller: EditorCaller, editing: EditingDep, by: RequestedDep
) -> EntityRead:
    """It stays without any document, until somebody deletes it."""
    place = caller.tenant_id, workspace_id
    return EntityRead.of(await editing.create_entity(place, entity.name, entity.fields(), by))


@router.patch("/entity", summary="Edit an entity", responses=problems(*WRITE, EntityNotFound))
async def edit_entity(
    workspace_id: WorkspaceDep,
    edit: EntityEdit,
    caller: EditorCaller,
    editing: EditingDep,
    by: RequestedDep,
    name: NameInQuery,
) -> EntityRead:
    """What is said here holds whatever documents say. Another name is given by a merge into it."""
    return EntityRead.of(await editing.edit_entity((caller.tenant_id, workspace_id), name, edit.fields(), by))


@router.delete("/entity", status_code=204, summary="Delete an entity", responses=problems(*WRITE, EntityNotFound))
async def delete_entity(
    workspace_id: WorkspaceDep, caller: EditorCaller, editing: EditingDep, by: RequestedDep, name: NameInQuery
) -> None:
    """With its relations and all that was said of them. A later document that speaks of it makes it anew."""
    await editing.delete_entity((caller.tenant_id, workspace_id), name, by)


@router.post(
    "/entities/split",
    summary="Split an entity",
    responses=problems(*WRITE, EntityNotFound, InvalidEntity, UndoBlocked) | QUEUED | SPLIT,
)
async def split_entity(
    workspace_id: WorkspaceDep,
    split: EntitySplit,
    caller: AdminCaller,
    changes: ChangesDep,
    by: RequestedDep,
    response: Response,
) -> SplitRead | ChangeRead:
    """For a name that means several things: chunks are assigned to other names, which hold for their rebuilds too."""
    made = await changes.split(caller.tenant_id, workspace_id, split.name, split.assigned(), by)
    if isinstance(made, Split):
        return SplitRead(change_id=made.change_id, entities=[EntityRead.of(entity) for entity in made.entities])
    if made.state == "queued":
        response.status_code = 202
    return ChangeRead.of(made)


@router.get("/relation", summary="Read a relation", responses=problems(*READ, EntityNotFound, RelationNotFound))
async def read_relation(
    workspace_id: WorkspaceDep, caller: ReaderCaller, editing: EditingDep, source: EndInQuery, target: OtherEndInQuery
) -> RelationRead:
    """Between two entities, in either direction."""
    return RelationRead.of(await editing.get_relation((caller.tenant_id, workspace_id), (source, target)))


@router.post(
    "/relations",
    status_code=201,
    summary="Create a relation",
    responses=problems(*WRITE, InvalidEntity, EntityNotFound, RelationExists, RelationNotFound),
)
async def create_relation(
    workspace_id: WorkspaceDep, relation: RelationCreate, caller: EditorCaller, editing: EditingDep, by: RequestedDep
) -> RelationRead:
    """It stays without any document, as long as both entities do."""
    place, pair = (caller.tenant_id, workspace_id), (relation.source, relation.target)
    return RelationRead.of(await editing.create_relation(place, pair, relation.fields(), by))


@router.patch("/relation", summary="Edit a relation", responses=problems(*WRITE, EntityNotFound, RelationNotFound))
async def edit_relation(
    workspace_id: WorkspaceDep,
    edit: RelationEdit,
    caller: EditorCaller,
    editing: EditingDep,
    by: RequestedDep,
    source: EndInQuery,
    target: OtherEndInQuery,
) -> RelationRead:
    """What is said here holds whatever documents say."""
    place, pair = (caller.tenant_id, workspace_id), (source, target)
    return RelationRead.of(await editing.edit_relation(place, pair, edit.fields(), by))


@router.delete(
    "/relation",
    status_code=204,
    summary="Delete a relation",
    responses=problems(*WRITE, EntityNotFound, RelationNotFound),
)
async def delete_relation(
    workspace_id: WorkspaceDep,
    caller: EditorCaller,
    editing: EditingDep,
    by: RequestedDep,
    source: EndInQuery,
    target: OtherEndInQuery,
) -> None:
    """With all that was said of it. A later document that speaks of it makes it anew."""
    await editing.delete_relation((caller.tenant_id, workspace_id), (source, target), by)
