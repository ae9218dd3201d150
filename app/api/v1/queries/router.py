"""The route of questions."""

from fastapi import APIRouter, Request, Response

from app.api.connected import ServerStopping, while_connected
from app.api.deps import ContainerDep, ReaderCaller, WorkspaceDep
from app.api.idempotency import READS_ONLY
from app.api.problems import problems
from app.api.v1.queries.schemas import Query, QueryAnswer
from app.domain.limits.errors import QuotaExceeded
from app.domain.queries.deadlines import QueryDeadline
from app.domain.queries.errors import (
    BudgetsNotUsed,
    ChatModelMissing,
    KeywordsNotUsed,
    QueryRequired,
    RerankNotUsed,
    ThemeOptionsNotUsed,
)
from app.domain.queries.filters import FieldNotDeclared, FilterMismatch
from app.domain.queries.reranking import RerankModelMissing
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.errors import AppError
from app.providers.contract import EmbeddingMismatch, ModelRefused, ModelRejected, ModelUnavailable
from app.retrieval.contract import EngineOff, UnknownMode
from app.retrieval.routing import NoModeFits
from app.retrieval.themes.levels import ThemeLevelUnknown

# Of whatever asks a workspace.
QUERY_ERRORS: tuple[type[AppError], ...] = (
    WorkspaceNotFound,
    WorkspaceDeleting,
    EngineOff,
    UnknownMode,
    KeywordsNotUsed,
    BudgetsNotUsed,
    ThemeOptionsNotUsed,
    ThemeLevelUnknown,
    RerankNotUsed,
    QueryRequired,
    FieldNotDeclared,
    FilterMismatch,
    NoModeFits,
    ChatModelMissing,
    RerankModelMissing,
    QuotaExceeded,
    ModelRejected,
    ModelRefused,
    EmbeddingMismatch,
    ModelUnavailable,
    QueryDeadline,
    ServerStopping,
)

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/query", tags=["queries"])


@router.post(
    "",
    summary="Ask a question",
    openapi_extra=READS_ONLY,
    response_model=QueryAnswer,
    responses=problems(*QUERY_ERRORS),
)
async def ask(
    workspace_id: WorkspaceDep, query: Query, caller: ReaderCaller, container: ContainerDep, request: Request
) -> Response:
    """Brings back ranked evidence with citations, and the same as a context within the token budgets. The mode is the
    one asked for or a refusal, never another one; `auto` says which it picked and why."""
    asking = container.queries().ask(caller.tenant_id, workspace_id, query.question())
    answer = await while_connected(request, asking)
    # As it is: FastAPI would validate and copy hundreds of pieces of evidence once more.
    return Response(QueryAnswer.of(answer, workspace_id).model_dump_json(), media_type="application/json")
