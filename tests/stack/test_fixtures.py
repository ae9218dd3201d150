"""The fixtures themselves: the restricted role is restricted, and tenants do not see each other."""

import socket

import pytest
from pytest_socket import SocketConnectBlockedError
from sqlalchemy import func, select, text

from app.db.models import Tenant, Workspace
from app.db.session import Database
from tests.factories import Tenancy


async def test_runtime_role_cannot_bypass_row_level_security(database: Database) -> None:
    async with database.system() as session:
        row = (
            await session.execute(text("SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"))
        ).one()
    assert tuple(row) == (False, False)


async def test_a_tenant_sees_only_itself(database: Database, tenancy: Tenancy, other_tenancy: Tenancy) -> None:
    async with database.tenant(tenancy.tenant_id) as session:
        assert list(await session.scalars(select(Tenant.id))) == [tenancy.tenant_id]
    async with database.system() as session:
        assert await session.scalar(select(func.count()).select_from(Tenant)) == 0


async def test_a_workspace_belongs_to_its_tenant(database: Database, tenancy: Tenancy, other_tenancy: Tenancy) -> None:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    async with database.tenant(tenancy.tenant_id) as session:
        assert list(await session.scalars(select(Workspace.id))) == [workspace_id]
    async with database.tenant(other_tenancy.tenant_id) as session:
        assert list(await session.scalars(select(Workspace.id))) == []


def test_tests_cannot_reach_beyond_this_machine() -> None:
    # It warns as well, and warnings are errors here.
    with pytest.raises((SocketConnectBlockedError, UserWarning), match=r"192\.0\.2\.1"), socket.socket() as probe:
        probe.connect(("192.0.2.1", 80))
