"""Takes this process's database away while a test looks at what becomes of a request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from sqlalchemy.engine import make_url

from app.db.provision import DatabaseUrls
from tests.cluster import Cluster


@asynccontextmanager
async def database_away(cluster: Cluster, urls: DatabaseUrls) -> AsyncIterator[None]:
    """All connections are cut, and no new one is taken."""
    name = make_url(urls.app).database
    administrator = await asyncpg.connect(cluster.admin_url)
    try:
        await administrator.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        await administrator.fetch(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1", name
        )
        yield
    finally:
        await administrator.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        await administrator.close()
