"""The engine's pool and pairs of workspaces, one for LightRAG's own storages and one for units of work."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lightrag import operate, utils
from lightrag.kg.postgres_impl import ClientManager

from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.db.vector_tables import create_vector_tables
from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.pool import EngineDatabase, open_engine_database
from app.settings import Settings
from tests.factories import Tenancy
from tests.retrieval.storage.harness import DIMENSION, SUFFIX, Calls, Engine, close_engine, hold_lease, open_engine


@asynccontextmanager
async def own_engine_database(settings: Settings) -> AsyncIterator[EngineDatabase]:
    """A pool beside one that other tests of this process may hold open: LightRAG knows one at a time."""
    others = dict(ClientManager._instances)
    ClientManager._instances["db"] = None
    database = await open_engine_database(settings)
    try:
        yield database
    finally:
        await database.close()
        ClientManager._instances.update(others)


OpenEngine = Callable[..., Awaitable[Engine]]


class StoppedClock:
    """The module `time` with a clock that stands still."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        return 1_800_000_000.0


@pytest.fixture(autouse=True)
def _stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    # LightRAG orders what chunks said by the second in which they were answered.
    for module in (utils, operate):
        monkeypatch.setattr(module, "time", StoppedClock())


@pytest.fixture(scope="module")
async def engine_pool(settings: Settings, owner_database: Database) -> AsyncIterator[EngineDatabase]:
    async with owner_database.system() as session:
        await create_vector_tables(session, SUFFIX, DIMENSION)
    async with own_engine_database(settings) as opened:
        yield opened


@pytest.fixture
async def open_one(
    engine_pool: EngineDatabase, tenancy: Tenancy, urls: DatabaseUrls, tmp_path: Path
) -> AsyncIterator[OpenEngine]:
    """Opens an engine over a new workspace, or over one that is given."""
    opened: list[Engine] = []

    async def open_(*, is_unit: bool, ref: WorkspaceRef | None = None, calls: Calls | None = None) -> Engine:
        if ref is None:
            workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
            ref = WorkspaceRef(tenancy.tenant_id, workspace_id, 1)
            await hold_lease(urls.owner, ref)
        engine = await open_engine(ref, tmp_path, is_unit=is_unit, calls=calls)
        opened.append(engine)
        return engine

    yield open_
    for engine in opened:
        await close_engine(engine)
