"""Fixtures that every test may ask for: real servers, one database per pytest process, settings, tenants."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from redis import Redis

from app.db.provision import DatabaseUrls, clone_database, database_urls
from app.db.session import Database
from app.devstack.run_folders import close_run_folder, open_run_folder
from app.settings import Settings
from tests.cluster import HAS_AGE, RUN_FOLDER, Cluster, shared_cluster
from tests.factories import Tenancy
from tests.fakes.stub_process import stub_llm, stub_server  # noqa: F401 - fixtures
from tests.live import LiveStack

run_folder = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[run_folder] = open_run_folder("tests")
        os.environ[RUN_FOLDER] = str(config.stash[run_folder])


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(run_folder, None)
    if folder is not None:
        close_run_folder(folder)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not HAS_AGE:
        skip = pytest.mark.skip(reason="needs a Postgres with Apache AGE: run `make test-age`")
        for item in items:
            if item.get_closest_marker("age"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def worker_number() -> int:
    """0 for the first pytest process, 1 for the second …"""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The servers of this run, for tests that need an administrator (their own databases, roles, catalogs)."""
    return shared_cluster()


@pytest.fixture(scope="session")
def urls(cluster: Cluster, worker_number: int) -> DatabaseUrls:
    """This process's own database, a copy of the migrated template, by role."""
    name = f"trellis_test_{worker_number}"
    asyncio.run(clone_database(cluster.admin_url, cluster.template, name))
    return database_urls(cluster.admin_url, name, cluster.passwords)


@pytest.fixture(scope="session")
def redis_url(cluster: Cluster, worker_number: int) -> str:
    """This process's own Redis database, empty at the start."""
    url = cluster.redis(worker_number)
    with Redis.from_url(url) as client:
        client.flushdb()
    return url


@pytest.fixture(scope="session")
def settings(urls: DatabaseUrls, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of this process's servers, with folders of its own."""
    folder = tmp_path_factory.mktemp("trellis")
    return Settings(
        database_url=SecretStr(urls.app),
        engine_database_url=SecretStr(urls.engine),
        owner_database_url=SecretStr(urls.owner),
        redis_url=SecretStr(redis_url),
        blob_url=f"file://{folder}/blobs",
        scratch_dir=folder / "scratch",
        database_pool_size=5,
        engine_pool_size=4,
    )


@pytest.fixture(scope="session")
async def database(urls: DatabaseUrls) -> AsyncIterator[Database]:
    """Units of work as the restricted role that serves requests: row level security holds."""
    database = Database(urls.app, pool_size=5)
    yield database
    await database.close()


@pytest.fixture(scope="session")
async def owner_database(urls: DatabaseUrls) -> AsyncIterator[Database]:
    """Units of work as the owner of the schema, for arranging what an operator would have arranged."""
    database = Database(urls.owner, pool_size=3)
    yield database
    await database.close()


@pytest.fixture(scope="session")
async def engine_database(urls: DatabaseUrls) -> AsyncIterator[Database]:
    """Units of work as the restricted role of the engines."""
    database = Database(urls.engine, pool_size=3)
    yield database
    await database.close()


@pytest.fixture
async def tenancy(owner_database: Database, database: Database) -> Tenancy:
    """A new tenant of its own for this test: what other tests wrote is invisible to it."""
    return await Tenancy.create(owner_database, database)


@pytest.fixture
async def other_tenancy(owner_database: Database, database: Database) -> Tenancy:
    """A second tenant, for tests of isolation."""
    return await Tenancy.create(owner_database, database)


@pytest.fixture(scope="session")
def _live_processes(cluster: Cluster, worker_number: int) -> Iterator[LiveStack]:
    stack = LiveStack.create(cluster, worker_number)
    yield stack
    stack.processes.stop()


@pytest.fixture
def live_stack(_live_processes: LiveStack) -> LiveStack:
    """A running API, worker and beat on a database of their own; what an earlier test killed is started again."""
    _live_processes.ensure_running()
    return _live_processes
