"""A worker's container in the test's own process and loop, and uploads for it to work on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.blobs.store import BlobStore
from app.bootstrap import Worker, open_worker
from app.settings import Settings
from tests.factories import Tenancy
from tests.workers.fleet import Fleet, open_fleet
from tests.workers.uploads import Uploads


@pytest.fixture(scope="session")
async def worker(settings: Settings) -> AsyncIterator[Worker]:
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
