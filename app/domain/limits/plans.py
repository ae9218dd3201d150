"""Plans and who has which, for operators."""

from collections.abc import Sequence
from uuid import UUID

from app.db.models import Plan, Tenant
from app.db.session import Database
from app.domain.limits.errors import PlanNotFound
from app.domain.limits.repository import LimitsRepository, PlanDirectory, Standing
from app.domain.tenants.errors import TenantNotFound
from app.domain.tenants.repository import TenantDirectory


class PlanService:
    """Needs a database that may act as an operator."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, name: str, limits: dict[str, int | None]) -> Plan:
        """Make or replace a plan; what is not given is not limited."""
        async with self._database.operator() as session:
            return await PlanDirectory(session).put(name, limits)

    async def list(self) -> Sequence[Plan]:
        async with self._database.operator() as session:
            return await PlanDirectory(session).list()

    async def assign(self, tenant_id: UUID, name: str | None) -> Tenant:
        """Raises TenantNotFound or PlanNotFound; None takes every limit away."""
        async with self._database.operator(tenant_id) as session:
            tenant = await TenantDirectory(session).lock(tenant_id)
            if tenant is None:
                raise TenantNotFound(f"There is no tenant {tenant_id}.", tenant_id=tenant_id)
            if name is not None and await PlanDirectory(session).find(name) is None:
                raise PlanNotFound(f"There is no plan {name!r}.", plan=name)
            tenant.plan = name
            await session.flush()
            return tenant

    async def standing(self, tenant_id: UUID) -> Standing:
        """What a tenant may use and has used."""
        async with self._database.tenant(tenant_id) as session:
            return await LimitsRepository(session).standing()
