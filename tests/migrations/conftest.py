"""An empty database of this process, and what its schema is."""

import asyncio
from collections.abc import Iterator

import pytest

from app.db.provision import drop_database, provision_database
from tests.cluster import Cluster


@pytest.fixture
def empty_database(cluster: Cluster, worker_number: int) -> Iterator[str]:
    """The owner's URL of a database that has roles and extension but no schema."""
    name = f"trellis_migrations_{worker_number}"
    urls = asyncio.run(provision_database(cluster.admin_url, name, cluster.passwords))
    yield urls.owner
    asyncio.run(drop_database(cluster.admin_url, name))
