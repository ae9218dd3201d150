"""A worker's container in the test's own process and loop, and uploads for it to work on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.blobs.store import BlobStore
from app.bootstrap import Worker, open_worker
from app.db.base import WorkspaceId
from app.db.session import Database
from app.settings import Settings
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer
from tests.workers.fleet import Fleet, open_fleet
from tests.workers.reports import GRAPH, SMALL_CHUNKS
from tests.workers.uploads import Uploads


@pytest.fixture(scope="module")
async def worker(settings: Settings) -> AsyncIterator[Worker]:
    # Not for the session: a process may have one graph engine at a time, and tests elsewhere open their own.
    async with open_worker(settings) as worker:
        yield worker


@pytest.fixture
def uploads(tenancy: Tenancy, settings: Settings) -> Uploads:
    return Uploads(tenancy.database, BlobStore(settings.blob_url), tenancy.tenant_id)


@pytest.fixture
async def fleet(settings: Settings, tmp_path: Path) -> AsyncIterator[Fleet]:
    """A test starts the workers it needs; what is still alive at its end is stopped."""
    async with open_fleet(settings, tmp_path) as fleet:
        yield fleet


@pytest.fixture
async def stub_chat(stub_llm: StubServer, owner_database: Database, settings: Settings) -> str:
    """The name of a chat model that the stub serves, which gives up at the first failure."""
    return await register_stub(stub_llm, owner_database, settings)


@pytest.fixture
async def stub_workspace(tenancy: Tenancy, stub_chat: str) -> WorkspaceId:
    return await tenancy.add_workspace(engines=GRAPH, chat=stub_chat, settings=SMALL_CHUNKS)
