"""Where the link of a citation leads: a passage with its neighbours."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from app.api.deps import ReaderCaller, TenantUnit, WorkspaceDep
from app.api.problems import problems
from app.api.v1.documents.schemas import PassageInContext, PassageRead
from app.db.base import TenantId
from app.domain.documents.errors import PassageNotFound
from app.domain.workspaces.errors import WorkspaceNotFound
from app.domain.workspaces.repository import WorkspaceRepository
from app.retrieval.contract import WorkspaceRef
from app.retrieval.store.passages import load_surroundings

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/passages", tags=["documents"])


@router.get(
    "/{passage_id}",
    summary="Read a cited passage",
    responses=problems(WorkspaceNotFound, PassageNotFound),
)
async def read_passage(
    workspace_id: WorkspaceDep,
    _: ReaderCaller,
    passage_id: Annotated[int, Path(ge=1, lt=2**63)],
    session: TenantUnit,
    around: Annotated[int, Query(ge=0, le=20, description="Neighbours on each side.")] = 1,
) -> PassageInContext:
    """Works as long as the cited version is kept, also when a newer one has taken its place."""
    number = (await WorkspaceRepository(session).get(workspace_id)).row.number
    ref = WorkspaceRef(TenantId(session.tenant_id), workspace_id, number)
    passages = await load_surroundings(session, ref, passage_id, around=around)
    found = [position for position, passage in enumerate(passages) if passage.passage_id == passage_id]
    if not found:
        raise PassageNotFound(f"There is no passage {passage_id} in this workspace.", passage_id=passage_id)
    shown = [PassageRead.of(passage) for passage in passages]
    return PassageInContext(passage=shown[found[0]], before=shown[: found[0]], after=shown[found[0] + 1 :])
