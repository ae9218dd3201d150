"""Routes of entities."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.deps import AdminCaller, ReaderCaller, RoleRequired, WorkspaceDep
from app.api.fields import NamePart
from app.api.pagination import Cursor, InvalidCursor, Limit, decode_cursor, encode_cursor
from app.api.problems import problems
from app.api.v1.entities.editing import EditingDep
from app.api.v1.entities.names import NameInPath, NameInQuery, RequestedDep, ServiceDep
from app.api.v1.entities.schemas import (
    AliasCreate,
    AliasPage,
    AliasRead,
    EntityItem,
    EntityPage,
    EntityRead,
)
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.retrieval.contract import EngineOff, GraphWriteFailed, WorkspaceBusy
from app.retrieval.entity_contract import AliasNotFound, AliasTaken, EntityNotFound, InvalidAlias

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/entities", tags=["entities"])
one = APIRouter(prefix="/v1/workspaces/{workspace_id}/entity", tags=["entities"])


@router.get(
    "",
    summary="List entities",
    responses=problems(WorkspaceNotFound, WorkspaceDeleting, EngineOff, InvalidCursor),
)
async def list_entities(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    service: ServiceDep,
    prefix: Annotated[NamePart | None, Query(description="How the name begins, in any case.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> EntityPage:
    """By name."""
    after = decode_cursor(cursor, 1)[0] if cursor else None
    found = await service.list(caller.tenant_id, workspace_id, prefix=prefix, after=after, limit=limit + 1)
    page, rest = found[:limit], found[limit:]
    return EntityPage(
        items=[EntityItem.of(entity, workspace_id) for entity in page],
        next_cursor=encode_cursor(page[-1].name) if rest else None,
    )


@router.get(
    "/aliases",
    summary="List aliases",
    responses=problems(WorkspaceNotFound, WorkspaceDeleting, EngineOff, InvalidCursor),
)
async def list_aliases(
    workspace_id: WorkspaceDep, caller: ReaderCaller, service: ServiceDep, cursor: Cursor = None, limit: Limit = 50
) -> AliasPage:
    """Names that mean an entity, because of a merge or by hand."""
    after = decode_cursor(cursor, 1)[0] if cursor else None
    found = await service.aliases(caller.tenant_id, workspace_id, after=after, limit=limit + 1)
    page, rest = found[:limit], found[limit:]
    return AliasPage(
        items=[AliasRead.of(alias) for alias in page], next_cursor=encode_cursor(page[-1].alias) if rest else None
    )


@router.post(
    "/aliases",
    status_code=201,
    summary="Add an alias",
    responses=problems(
        RoleRequired, WorkspaceNotFound, WorkspaceDeleting, EngineOff, InvalidAlias, AliasTaken, WorkspaceBusy,
        GraphWriteFailed,
    ),
)  # fmt: skip
async def add_alias(
    workspace_id: WorkspaceDep, alias: AliasCreate, caller: AdminCaller, editing: EditingDep, by: RequestedDep
) -> AliasRead:
    """From now on documents and questions that say the alias mean the target; adding it again changes nothing."""
    place = caller.tenant_id, workspace_id
    return AliasRead.of(await editing.add_alias(place, alias.alias, alias.target, by))


@router.delete(
    "/aliases/{alias:path}",
    status_code=204,
    summary="Remove an alias",
    responses=problems(
        RoleRequired, WorkspaceNotFound, WorkspaceDeleting, EngineOff, AliasNotFound, WorkspaceBusy, GraphWriteFailed
    ),
)
async def remove_alias(
    workspace_id: WorkspaceDep, alias: NameInPath, caller: AdminCaller, editing: EditingDep, by: RequestedDep
) -> None:
    """Documents that come later have the name as an entity of its own again; what is merged stays merged."""
    await editing.remove_alias((caller.tenant_id, workspace_id), alias, by)


@router.get(
    "/{name:path}",
    summary="Read an entity",
    responses=problems(WorkspaceNotFound, WorkspaceDeleting, EngineOff, EntityNotFound),
)
async def read_entity(
    workspace_id: WorkspaceDep, name: NameInPath, caller: ReaderCaller, service: ServiceDep
) -> EntityRead:
    """What the graph knows of it."""
    return EntityRead.of(await service.get(caller.tenant_id, workspace_id, name))


@one.get(
    "",
    summary="Read an entity by any name",
    responses=problems(WorkspaceNotFound, WorkspaceDeleting, EngineOff, EntityNotFound),
)
async def read_named_entity(
    workspace_id: WorkspaceDep, caller: ReaderCaller, service: ServiceDep, name: NameInQuery
) -> EntityRead:
    """As `/entities/{name}`, also for names that no path can hold, and for those that are words of our paths."""
    return EntityRead.of(await service.get(caller.tenant_id, workspace_id, name))
