"""The route of the concept graph."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator

from app.api.connected import while_connected
from app.api.deps import ContainerDep, ReaderCaller, WorkspaceDep
from app.api.fields import Prose
from app.api.pagination import MAX_DIGITS, Cursor, InvalidCursor, Limit, decode_cursor, encode_cursor
from app.api.problems import problems
from app.api.v1.concepts.schemas import ConceptGraphRead, ConceptPage, RankedConceptRead
from app.api.v1.queries.schemas import not_blank
from app.api.v1.themes.schemas import NoticeRead
from app.domain.limits.errors import QuotaExceeded
from app.domain.themes.browsing import ThemesTimedOut
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.providers.contract import EmbeddingMismatch, ModelRejected, ModelUnavailable
from app.retrieval.concepts import MAX_NODES
from app.retrieval.themes.concept_store import ConceptPosition

MAX_QUERY_CHARS = 2_000
MAX_SEARCH_CHARS = 200
router = APIRouter(prefix="/v1/workspaces/{workspace_id}/concepts", tags=["queries"])


@router.get(
    "",
    summary="List the concepts",
    responses=problems(WorkspaceNotFound, WorkspaceDeleting, ThemesTimedOut, InvalidCursor),
)
async def list_concepts(
    request: Request,
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    container: ContainerDep,
    search: Annotated[
        Prose, Query(max_length=MAX_SEARCH_CHARS, description="A part of the concept, or a text that names some.")
    ] = "",
    cursor: Cursor = None,
    limit: Limit = 50,
) -> ConceptPage:
    """The concepts that themes are made from, the most central first. What is not said by any document any more is left out,
    so a page may hold less than `limit`."""
    place = caller.tenant_id, workspace_id
    listing = container.theme_browsing().concepts(place, search=search, after=_position(cursor), limit=limit)
    found = await while_connected(request, listing)
    return ConceptPage(
        items=[RankedConceptRead.of(concept) for concept in found.concepts],
        next_cursor=None if found.following is None else encode_cursor(*map(repr, found.following)),
        notices=[NoticeRead.model_validate(notice) for notice in found.notices],
    )


def _position(cursor: str | None) -> ConceptPosition | None:
    if cursor is None:
        return None
    rank, key = decode_cursor(cursor, 2)
    try:
        found = float(rank), int(key)
    except ValueError:
        raise InvalidCursor("Use `next_cursor` of an earlier answer as it is.") from None
    if abs(found[1]) >= 2**63 or len(key) > MAX_DIGITS + 2:
        raise InvalidCursor("Use `next_cursor` of an earlier answer as it is.")
    return found


@router.get(
    "/graph",
    summary="Draw the concepts around a question",
    responses=problems(
        WorkspaceNotFound, WorkspaceDeleting, QuotaExceeded, ModelRejected, EmbeddingMismatch, ModelUnavailable
    ),
)  # fmt: skip
async def concept_graph(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    container: ContainerDep,
    query: Annotated[
        Prose,
        Query(min_length=1, max_length=MAX_QUERY_CHARS, description="The question.", examples=["Who made the seals?"]),
        AfterValidator(not_blank),
    ],
    nodes: Annotated[int, Query(ge=1, le=MAX_NODES, description="Concepts at most.")] = 40,
) -> ConceptGraphRead:
    """The concepts of the passages that fit a question best, and how they hang together: what a lazy mode walks over. No
    model is called but the embedding of the question."""
    graph = await container.queries().concepts(caller.tenant_id, workspace_id, query, nodes)
    return ConceptGraphRead.model_validate(graph)
