"""One filled installation for the tests of a process that harm none of it: they work on copies."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.db.provision import DatabaseUrls, clone_database, database_urls, drop_database
from tests.cluster import Cluster
from tests.operations.installation import Filled, fill, settings_of

DOCUMENTS = Path(__file__).resolve().parents[2] / "demo" / "documents"

MakeDatabase = Callable[[str, str], DatabaseUrls]


@pytest.fixture(scope="session")
def make_database(cluster: Cluster, worker_number: int) -> Iterator[MakeDatabase]:
    """Databases that are copies of another one, gone at the end of the run."""
    names: list[str] = []

    def make(purpose: str, template: str) -> DatabaseUrls:
        name = f"trellis_{purpose}_{worker_number}"
        asyncio.run(clone_database(cluster.admin_url, template, name))
        names.append(name)
        return database_urls(cluster.admin_url, name, cluster.passwords)

    yield make
    for name in names:
        asyncio.run(drop_database(cluster.admin_url, name))


@pytest.fixture(scope="session")
def filled(
    cluster: Cluster, redis_url: str, make_database: MakeDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Filled:
    """Filled, and closed again: nobody is connected to it."""
    folder = tmp_path_factory.mktemp("filled")
    urls = make_database("filled", cluster.template)
    settings = settings_of(urls, redis_url, folder / "blobs", folder / "scratch")
    return asyncio.run(fill(urls, settings, DOCUMENTS))
