"""Routes that tell the caller what it is and what there is to choose from."""

from fastapi import APIRouter, Depends

from app.api.deps import READER, ReaderCaller, TenantUnit
from app.api.v1.account.schemas import Me, Mode, Model, Models, Modes
from app.domain.models.repository import ModelProfileRepository
from app.domain.tenants.repository import KeyRepository
from app.retrieval.contract import MODES
from app.retrieval.routing import AUTO

router = APIRouter(prefix="/v1", tags=["account"])


@router.get("/me", summary="Read what this key is")
async def read_me(caller: ReaderCaller, session: TenantUnit) -> Me:
    """Handy to try a key with."""
    name = await KeyRepository(session).tenant_name()
    return Me(
        tenant=Me.Tenant(id=caller.tenant_id, name=name),
        key_id=caller.key_id,
        subject=caller.subject,
        role=caller.role,
        workspace_id=caller.workspace_id,
    )


@router.get("/modes", summary="List the modes", dependencies=[Depends(READER)])
async def list_modes() -> Modes:
    """What `mode` of a query may be. Which of them a workspace answers depends on its engines."""
    return Modes(
        modes=[*(Mode(name=name, engine=engine) for name, engine in MODES.items()), Mode(name=AUTO, engine=None)]
    )


@router.get("/models", summary="List the models", dependencies=[Depends(READER)])
async def list_models(session: TenantUnit) -> Models:
    """Names only: endpoints and keys are the operator's."""
    rows = await ModelProfileRepository(session).list()
    return Models(
        models=[
            Model.model_validate({"name": row.name, "role": row.role, "is_offline": row.provider == "offline"})
            for row in rows
        ]
    )
