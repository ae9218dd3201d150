"""Routes of themes."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query

from app.api.deps import ContainerDep, ReaderCaller, WorkspaceDep
from app.api.pagination import Cursor, InvalidCursor, Limit, decode_cursor, encode_cursor
from app.api.problems import problems
from app.api.v1.themes.detail_schemas import ThemeDetailRead, ThemePage
from app.api.v1.themes.schemas import MAX_LEVEL
from app.domain.themes.browsing import ThemeBrowsing
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.retrieval.themes.browsing import Position, ThemeNotFound
from app.retrieval.themes.levels import ThemeLevelUnknown

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/themes", tags=["themes"])
READ = (WorkspaceNotFound, WorkspaceDeleting)
LevelInQuery = Annotated[
    Annotated[int, Query(ge=0, le=MAX_LEVEL)] | Literal["auto"],
    Query(description="0 is the coarsest; `auto`: the coarsest that has five themes."),
]


@router.get("", summary="List the themes", responses=problems(*READ, ThemeLevelUnknown, InvalidCursor))
async def list_themes(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    container: ContainerDep,
    level: LevelInQuery = "auto",
    cursor: Cursor = None,
    limit: Limit = 50,
) -> ThemePage:
    """What the corpus is about: the themes of one level, the most important first. Where there is no map yet the list is
    empty, and a notice says why."""
    found = await _browsing(container).list(
        (caller.tenant_id, workspace_id),
        level=None if level == "auto" else level,
        after=_position(cursor),
        limit=limit,
    )
    last = found.themes[-1] if found.has_more and found.themes else None
    following = None if last is None else encode_cursor(repr(last.importance.importance), str(last.id))
    return ThemePage.of(found, workspace_id, following)


@router.get("/{theme_id}", summary="Read a theme", responses=problems(*READ, ThemeNotFound))
async def read_theme(
    workspace_id: WorkspaceDep, theme_id: UUID, caller: ReaderCaller, container: ContainerDep
) -> ThemeDetailRead:
    """With the themes that it is made of, passages that stand for it, and the documents with most of them. Its id lasts
    over later maps as long as its passages are mostly the same."""
    found = await _browsing(container).get((caller.tenant_id, workspace_id), theme_id)
    return ThemeDetailRead.of(found, workspace_id)


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
