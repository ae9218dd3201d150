"""Routes of themes."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request

from app.api.connected import while_connected
from app.api.deps import ContainerDep, EditorCaller, ReaderCaller, WorkspaceDep
from app.api.pagination import Cursor, InvalidCursor, decode_cursor, encode_cursor
from app.api.problems import problems
from app.api.v1.themes.detail_schemas import (
    OutsidePage,
    ThemeDetailRead,
    ThemePage,
    ThemeReportRead,
    ThemesRefreshing,
)
from app.api.v1.themes.schemas import MAX_LEVEL
from app.domain.limits.errors import QuotaExceeded
from app.domain.queries.errors import ChatModelMissing
from app.domain.themes.browsing import ThemeBrowsing, ThemesTimedOut
from app.domain.themes.reports import ThemeChanged, ThemeReportsOff, ThemeReportTimedOut
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.providers.contract import ModelCutOff, ModelNonsense, ModelRefused, ModelRejected, ModelUnavailable
from app.retrieval.themes.browsing import Position, ThemeNotFound
from app.retrieval.themes.levels import ThemeLevelUnknown

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/themes", tags=["themes"])
READ = (WorkspaceNotFound, WorkspaceDeleting)
# Of each theme passages are counted anew.
Limit = Annotated[int, Query(ge=1, le=50, description="How many at most.")]
LevelInQuery = Annotated[
    Annotated[int, Query(ge=0, le=MAX_LEVEL)] | Literal["auto"],
    Query(description="0 is the coarsest; `auto`: the coarsest that has five themes."),
]


@router.get("", summary="List the themes", responses=problems(*READ, ThemesTimedOut, ThemeLevelUnknown, InvalidCursor))
async def list_themes(
    request: Request,
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    container: ContainerDep,
    level: LevelInQuery = "auto",
    cursor: Cursor = None,
    limit: Limit = 50,
) -> ThemePage:
    """What the corpus is about: the themes of one level, the most important first. Where there is no map yet the list is
    empty, and a notice says why."""
    place, chosen = (caller.tenant_id, workspace_id), None if level == "auto" else level
    listing = _browsing(container).list(place, level=chosen, after=_position(cursor), limit=limit)
    found = await while_connected(request, listing)
    last = found.themes[-1] if found.has_more and found.themes else None
    following = None if last is None else encode_cursor(repr(last.importance.importance), str(last.id))
    return ThemePage.of(found, workspace_id, following)


@router.post("/refresh", status_code=202, summary="Have the map of themes made anew", responses=problems(*READ))
async def refresh_themes(workspace_id: WorkspaceDep, caller: EditorCaller, container: ContainerDep) -> ThemesRefreshing:
    """In the background, whatever has changed; by itself it happens when enough of the workspace has. The map that is there
    answers until the new one is ready."""
    await container.queries().open(caller.tenant_id, workspace_id)
    await container.theme_refreshing().ask(caller.tenant_id, workspace_id)
    return ThemesRefreshing(
        workspace_id=workspace_id, links=ThemesRefreshing.Links(themes=f"/v1/workspaces/{workspace_id}/themes")
    )


@router.get("/outside", summary="List documents in no theme", responses=problems(*READ, ThemesTimedOut, InvalidCursor))
async def list_outside(
    request: Request,
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    container: ContainerDep,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> OutsidePage:
    """The documents that no theme speaks of, by their ids: a map of themes alone would leave them unseen."""
    after = None if cursor is None else _document_of(cursor)
    listing = _browsing(container).outside((caller.tenant_id, workspace_id), after=after, limit=limit)
    found = await while_connected(request, listing)
    return OutsidePage.of(found, encode_cursor(str(found.documents[-1].document_id)) if found.has_more else None)


@router.get("/{theme_id}", summary="Read a theme", responses=problems(*READ, ThemesTimedOut, ThemeNotFound))
async def read_theme(
    request: Request, workspace_id: WorkspaceDep, theme_id: UUID, caller: ReaderCaller, container: ContainerDep
) -> ThemeDetailRead:
    """With the themes that it is made of, passages that stand for it, and the documents with most of them. Its id lasts
    over later maps as long as its passages are mostly the same."""
    place = (caller.tenant_id, workspace_id)
    found = await while_connected(request, _browsing(container).get(place, theme_id))
    report = await container.theme_reports().find(place, found.content_hash)
    return ThemeDetailRead.of(found, report, workspace_id)


@router.post(
    "/{theme_id}/report",
    summary="Have a report of a theme written",
    responses=problems(
        *READ, ThemeNotFound, ThemeReportsOff, ThemeChanged, ThemeReportTimedOut, ChatModelMissing, QuotaExceeded, ModelRejected, ModelRefused,
        ModelCutOff, ModelNonsense, ModelUnavailable,
    ),
)  # fmt: skip
async def write_report(
    request: Request, workspace_id: WorkspaceDep, theme_id: UUID, caller: EditorCaller, container: ContainerDep
) -> ThemeReportRead:
    """By one call of the workspace's chat model, if the workspace wants reports (`theme_reports`) and none of what the theme's
    passages say now is there. The offline model quotes sentences, and says so."""
    writing = container.theme_reports().write((caller.tenant_id, workspace_id), theme_id)
    found = await while_connected(request, writing)
    return ThemeReportRead.model_validate(found)


def _browsing(container: ContainerDep) -> ThemeBrowsing:
    return container.theme_browsing()


def _position(cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    importance, theme_id = decode_cursor(cursor, 2)
    try:
        return float(importance), UUID(theme_id)
    except ValueError:
        raise InvalidCursor("Use `next_cursor` of an earlier answer as it is.") from None


def _document_of(cursor: str) -> UUID:
    [document_id] = decode_cursor(cursor, 1)
    try:
        return UUID(document_id)
    except ValueError:
        raise InvalidCursor("Use `next_cursor` of an earlier answer as it is.") from None
