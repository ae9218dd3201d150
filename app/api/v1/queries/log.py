"""Routes of the query log: what was asked and answered, what people say of it, and what that tells of the modes."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from app.api.deps import EditorCaller, ReaderCaller, RoleRequired, TenantUnit, WorkspaceDep
from app.api.pagination import Cursor, InvalidCursor, Limit, decode_position, encode_position
from app.api.problems import problems
from app.api.v1.queries.log_schemas import (
    FeedbackGiven,
    FeedbackRead,
    LoggedQueryDetail,
    LoggedQueryPage,
    LoggedQueryRead,
    QueryReport,
)
from app.db.session import TenantSession
from app.domain.queries.errors import NotInEvidence, QueryNotFound
from app.domain.queries.feedback import give_feedback
from app.domain.queries.feedback_repository import FeedbackRepository
from app.domain.queries.log_repository import QueryLogRepository
from app.domain.workspaces.errors import WorkspaceNotFound
from app.domain.workspaces.repository import WorkspaceRepository

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/queries", tags=["queries"])


@router.get("", summary="List the logged queries", responses=problems(RoleRequired, WorkspaceNotFound, InvalidCursor))
async def list_queries(
    workspace_id: WorkspaceDep, _: EditorCaller, session: TenantUnit, cursor: Cursor = None, limit: Limit = 50
) -> LoggedQueryPage:
    """The newest first. Part of them, if the workspace logs a part only, and for as long as the installation keeps them."""
    await WorkspaceRepository(session).get(workspace_id)
    before = decode_position(cursor)
    found = await QueryLogRepository(session).list(workspace_id, before=before, limit=limit + 1)
    page, rest = found[:limit], found[limit:]
    return LoggedQueryPage(
        items=[LoggedQueryRead.model_validate(row) for row in page],
        next_cursor=encode_position(page[-1].created_at, page[-1].id) if rest else None,
    )


@router.get("/report", summary="Compare the modes by feedback", responses=problems(RoleRequired, WorkspaceNotFound))
async def report_queries(
    workspace_id: WorkspaceDep,
    _: EditorCaller,
    session: TenantUnit,
    since: Annotated[AwareDatetime | None, Query(description="From this time on; its time zone is part of it.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Before this time; its time zone is part of it.")] = None,
    min_ratings: Annotated[int, Query(ge=1, le=1000, description="Of a mode, before it can be the best.")] = 5,
) -> QueryReport:
    """Which mode was rated best for which kind of question, with the counts that this stands on."""
    await WorkspaceRepository(session).get(workspace_id)
    standings = await FeedbackRepository(session).report(workspace_id, since=since, until=until)
    return QueryReport.of(list(standings), min_ratings)


@router.get(
    "/{query_id}",
    summary="Read a logged query",
    responses=problems(RoleRequired, WorkspaceNotFound, QueryNotFound),
)
async def read_query(
    workspace_id: WorkspaceDep, query_id: UUID, _: EditorCaller, session: TenantUnit
) -> LoggedQueryDetail:
    """With the ids of its evidence and what people said of it."""
    log = QueryLogRepository(session)
    row = await log.get(workspace_id, query_id)
    return LoggedQueryDetail.with_all(row, list(await log.evidence(query_id)), await _feedback(session, query_id))


@router.post(
    "/{query_id}/feedback",
    summary="Say what you think of an answer",
    responses=problems(WorkspaceNotFound, QueryNotFound, NotInEvidence),
)
async def post_feedback(
    workspace_id: WorkspaceDep, query_id: UUID, given: FeedbackGiven, caller: ReaderCaller, session: TenantUnit
) -> FeedbackRead:
    """Everyone who may ask may rate. Each key or user has one word on an answer: a later one replaces it."""
    await give_feedback(session, workspace_id, query_id, caller.name, given.feedback())
    found = await _feedback(session, query_id)
    return next(each for each in found if each.caller == caller.name)


async def _feedback(session: TenantSession, query_id: UUID) -> list[FeedbackRead]:
    repository = FeedbackRepository(session)
    verdicts = list(await repository.verdicts(query_id))
    return [FeedbackRead.of(row, verdicts) for row in await repository.list(query_id)]
