"""The application as it is served, on this run's servers, and callers with keys of every kind."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.bootstrap import Container, Worker, open_worker
from app.db.session import Database
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService
from app.jobs import IndexGraph, ProcessVersion
from app.main import create_app
from app.settings import Settings
from tests.factories import Tenancy
from workers.task import attempt

Connect = Callable[..., Awaitable[httpx.AsyncClient]]
Index = Callable[..., Awaitable[None]]


@pytest.fixture(scope="module")
async def worker(settings: Settings) -> AsyncIterator[Worker]:
    # Not for the session: a process may have one graph engine at a time, and tests elsewhere open their own.
    async with open_worker(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def container(worker: Worker) -> Container:
    """Shared with the worker: one process has one graph engine."""
    return worker.container


@pytest.fixture(scope="module")
async def transport(container: Container) -> AsyncIterator[httpx.ASGITransport]:
    app = create_app(container)
    async with app.router.lifespan_context(app):
        yield httpx.ASGITransport(app, raise_app_exceptions=False)


@pytest.fixture
async def connect(owner_database: Database, transport: httpx.ASGITransport) -> AsyncIterator[Connect]:
    """Makes a client with a new key of a tenant; by default one that may do everything."""
    clients: list[httpx.AsyncClient] = []

    async def connect(tenancy: Tenancy, role: Role = Role.ADMIN, **key: Any) -> httpx.AsyncClient:
        text = await TenantService(owner_database).create_key(tenancy.tenant_id, name="test", role=role, **key)
        client = httpx.AsyncClient(
            transport=transport, base_url="http://trellis", headers={"Authorization": f"Bearer {text}"}
        )
        clients.append(client)
        return client

    yield connect
    for client in clients:
        await client.aclose()


@pytest.fixture
async def client(connect: Connect, tenancy: Tenancy) -> httpx.AsyncClient:
    """An administrator of `tenancy`."""
    return await connect(tenancy)


@pytest.fixture
async def stranger(connect: Connect, other_tenancy: Tenancy) -> httpx.AsyncClient:
    """An administrator of another tenant."""
    return await connect(other_tenancy)


@pytest.fixture
async def anonymous(transport: httpx.ASGITransport) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=transport, base_url="http://trellis") as client:
        yield client


@pytest.fixture
def index(worker: Worker) -> Index:
    """Does a worker's jobs for uploaded documents, in the order given."""

    async def run(tenancy: Tenancy, *documents: Any) -> None:
        for document in documents:
            ids = (tenancy.tenant_id, UUID(document["workspace_id"]), UUID(document["version"]["id"]))
            await attempt(worker.jobs, ProcessVersion(*ids), runs=1)
            if "graph" in document["engines"]:
                await attempt(worker.jobs, IndexGraph(*ids), runs=1)

    return run
