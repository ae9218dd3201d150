"""The route of the concept graph."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AfterValidator

from app.api.deps import ContainerDep, ReaderCaller, WorkspaceDep
from app.api.fields import Prose
from app.api.problems import problems
from app.api.v1.concepts.schemas import ConceptGraphRead
from app.api.v1.queries.schemas import not_blank
from app.domain.limits.errors import QuotaExceeded
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.providers.contract import EmbeddingMismatch, ModelRejected, ModelUnavailable
from app.retrieval.concepts import MAX_NODES

MAX_QUERY_CHARS = 2_000
router = APIRouter(prefix="/v1/workspaces/{workspace_id}/concepts", tags=["queries"])


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
