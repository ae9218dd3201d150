"""Routes of workspaces."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from app.api.deps import (
    AdminCaller,
    ContainerDep,
    EditorCaller,
    KeyBoundToWorkspace,
    ReaderCaller,
    RoleRequired,
    TenantAdmin,
    TenantUnit,
    WorkspaceDep,
)
from app.api.pagination import Cursor, InvalidCursor, Limit, decode_position, encode_position
from app.api.problems import problems
from app.api.v1.workspaces.schemas import (
    ReindexAccepted,
    WorkspaceCreate,
    WorkspacePage,
    WorkspaceRead,
    WorkspaceUpdate,
)
from app.domain.documents.service import DocumentService
from app.domain.workspaces.errors import (
    ModeNeedsEngine,
    UnknownModel,
    WorkspaceDeleting,
    WorkspaceExists,
    WorkspaceNotFound,
)
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import ModelDefaults, WorkspaceDraft, WorkspaceService
from app.retrieval.contract import GraphStoreUnavailable, UnknownMode
from app.retrieval.routing import NoModeFits

router = APIRouter(prefix="/v1/workspaces", tags=["workspaces"])


async def workspace_service(session: TenantUnit, container: ContainerDep) -> WorkspaceService:
    settings = container.settings
    defaults = ModelDefaults(embedding=settings.default_embedding_model, chat=settings.default_chat_model)
    return WorkspaceService(session, defaults)


ServiceDep = Annotated[WorkspaceService, Depends(workspace_service)]


@router.post(
    "",
    status_code=201,
    summary="Create a workspace",
    responses={
        201: {"headers": {"Location": {"description": "The workspace.", "schema": {"type": "string"}}}},
        **problems(
            RoleRequired, KeyBoundToWorkspace, WorkspaceExists, UnknownModel, UnknownMode,
            ModeNeedsEngine, NoModeFits, GraphStoreUnavailable,
        ),
    },
)  # fmt: skip
async def create_workspace(
    wanted: WorkspaceCreate, _: TenantAdmin, service: ServiceDep, container: ContainerDep, response: Response
) -> WorkspaceRead:
    """A corpus of its own: nothing in it is ever seen from another one."""
    await container.graph.stores.require_available(wanted.graph_store)
    record = await service.create(
        WorkspaceDraft(
            name=wanted.name,
            engines=tuple(wanted.engines),
            graph_store=wanted.graph_store,
            default_mode=wanted.default_mode,
            settings=wanted.settings,
            embedding_model=wanted.embedding_model,
            chat_model=wanted.chat_model,
            rerank_model=wanted.rerank_model,
        )
    )
    response.headers["Location"] = f"/v1/workspaces/{record.row.id}"
    return WorkspaceRead.of(record)


@router.get("", summary="List workspaces", responses=problems(InvalidCursor))
async def list_workspaces(
    caller: ReaderCaller, session: TenantUnit, cursor: Cursor = None, limit: Limit = 50
) -> WorkspacePage:
    """In order of creation. A key that is bound to a workspace sees that one only."""
    after = decode_position(cursor)
    found = await WorkspaceRepository(session).list(only=caller.workspace_id, after=after, limit=limit + 1)
    page, rest = found[:limit], found[limit:]
    last = page[-1].row if rest else None
    return WorkspacePage(
        items=[WorkspaceRead.of(record) for record in page],
        next_cursor=encode_position(last.created_at, last.id) if last else None,
    )


@router.get("/{workspace_id}", summary="Read a workspace", responses=problems(WorkspaceNotFound))
async def read_workspace(workspace_id: WorkspaceDep, _: ReaderCaller, session: TenantUnit) -> WorkspaceRead:
    """Its engines, models and settings."""
    return WorkspaceRead.of(await WorkspaceRepository(session).get(workspace_id))


@router.patch(
    "/{workspace_id}",
    summary="Change a workspace",
    responses=problems(
        RoleRequired, WorkspaceNotFound, WorkspaceExists, WorkspaceDeleting, UnknownMode, UnknownModel,
        ModeNeedsEngine, NoModeFits,
    ),
)  # fmt: skip
async def update_workspace(
    workspace_id: WorkspaceDep, wanted: WorkspaceUpdate, _: AdminCaller, service: ServiceDep
) -> WorkspaceRead:
    """Settings that decide how documents are indexed leave the documents there are `outdated`, until a reindex."""
    record = await service.update(
        workspace_id, name=wanted.name, default_mode=wanted.default_mode, settings=wanted.given_settings(),
        rerank_model=(wanted.rerank_model,) if "rerank_model" in wanted.model_fields_set else None,
    )  # fmt: skip
    return WorkspaceRead.of(record)


@router.delete(
    "/{workspace_id}",
    status_code=202,
    summary="Delete a workspace",
    responses=problems(RoleRequired, WorkspaceNotFound),
)
async def delete_workspace(workspace_id: WorkspaceDep, _: AdminCaller, service: ServiceDep) -> WorkspaceRead:
    """It takes no more work from now on; its documents, indexes and originals are removed in the background."""
    return WorkspaceRead.of(await service.delete(workspace_id))


@router.post(
    "/{workspace_id}/reindex",
    status_code=202,
    summary="Index outdated documents anew",
    responses=problems(RoleRequired, WorkspaceNotFound, WorkspaceDeleting),
)
async def reindex_workspace(workspace_id: WorkspaceDep, _: EditorCaller, session: TenantUnit) -> ReindexAccepted:
    """Queues every document that was indexed under other settings than the workspace has now."""
    return ReindexAccepted(queued=await DocumentService(session, workspace_id).reindex())
