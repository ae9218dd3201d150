"""Routes of plans, for operators."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path

from app.api.deps import OPERATOR, ContainerDep, refuse_unknown_query
from app.api.fields import Name
from app.api.problems import operator_problems
from app.api.v1.admin.schemas import PlanChoice, PlanPut, PlanRead, Plans, TenantRead
from app.domain.limits.errors import PlanNotFound
from app.domain.limits.plans import PlanService
from app.domain.tenants.errors import TenantNotFound

router = APIRouter(
    prefix="/v1/admin", tags=["operators"], dependencies=[Depends(OPERATOR), Depends(refuse_unknown_query)]
)


async def plan_service(container: ContainerDep) -> PlanService:
    return PlanService(container.database)


ServiceDep = Annotated[PlanService, Depends(plan_service)]


@router.get("/plans", summary="List plans", responses=operator_problems())
async def list_plans(plans: ServiceDep) -> Plans:
    """By name."""
    return Plans(plans=[PlanRead.model_validate(row) for row in await plans.list()])


@router.put("/plans/{name}", summary="Make or replace a plan", responses=operator_problems())
async def put_plan(
    name: Annotated[Name, Path(description="Of the plan.")], limits: PlanPut, plans: ServiceDep
) -> PlanRead:
    """Its tenants have the new limits at once. What they hold beyond them stays; they can add nothing more."""
    return PlanRead.model_validate(await plans.put(name, limits.model_dump()))


@router.put(
    "/tenants/{tenant_id}/plan",
    summary="Choose a tenant's plan",
    responses=operator_problems(TenantNotFound, PlanNotFound),
)
async def choose_plan(tenant_id: UUID, wanted: PlanChoice, plans: ServiceDep) -> TenantRead:
    """It counts from the next request on."""
    return TenantRead.model_validate(await plans.assign(tenant_id, wanted.plan))
