"""Real worker processes on the test's own database and Redis, to be started, killed and stopped at will."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from celery import Celery
from sqlalchemy import text

from app.bootstrap import CeleryPublisher
from app.db.session import Database
from app.devstack.app_processes import AppProcesses
from app.devstack.processes import Child
from app.jobs import Job
from app.settings import Settings


@dataclass
class Fleet:
    """Workers that share a broker with the test."""

    processes: AppProcesses
    publisher: CeleryPublisher
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def start_worker(self, *options: str) -> Child:
        return self.processes.start_worker(f"worker{next(self._numbers)}", options)

    async def send(self, jobs: Sequence[Job]) -> None:
        await self.publisher.publish(jobs)

    async def send_task(self, name: str, *, queue: str) -> None:
        """Send a task that is no job to a queue of the caller's choosing."""
        broker = Celery("test", broker=self.processes.environment["TRELLIS_REDIS_URL"], set_as_current=False)
        await asyncio.to_thread(broker.send_task, name, queue=queue)
        broker.close()

    def log(self) -> str:
        return "\n".join(child.log.read_text(errors="replace") for child in self.processes.children)


async def forget_queued(settings: Settings) -> None:
    """Call off what earlier tests left: a message is for whoever's turn it is, and the sweeper sends removals again.

    Leases that a test held for long are free, so that removals left over end instead of being tried again and again.
    """
    assert settings.owner_database_url is not None
    database = Database(settings.owner_database_url.get_secret_value(), pool_size=1)
    async with database.system() as session:
        await session.execute(text("UPDATE index_states SET state = 'cancelled' WHERE state IN ('queued', 'running')"))
        await session.execute(
            text("UPDATE workspace_leases SET owner = NULL, expires_at = NULL WHERE owner IS NOT NULL")
        )
    await database.close()


@asynccontextmanager
async def open_fleet(settings: Settings, folder: Path, **overrides: str) -> AsyncIterator[Fleet]:
    """No worker runs yet. `overrides` are settings by name; leases are short unless told otherwise."""
    environment = {
        "TRELLIS_DATABASE_URL": settings.database_url.get_secret_value(),
        "TRELLIS_ENGINE_DATABASE_URL": settings.engine_database_url.get_secret_value(),
        "TRELLIS_REDIS_URL": settings.redis_url.get_secret_value(),
        "TRELLIS_BLOB_URL": settings.blob_url,
        "TRELLIS_DATABASE_POOL_SIZE": "5",
        "TRELLIS_ENGINE_POOL_SIZE": "4",
        "TRELLIS_LEASE_SECONDS": "3",
        "TRELLIS_SWEEP_INTERVAL_SECONDS": "1",
        "TRELLIS_REQUEUE_AFTER_SECONDS": "2",
        "TRELLIS_SHUTDOWN_GRACE_SECONDS": "1",
        **{f"TRELLIS_{name.upper()}": value for name, value in overrides.items()},
    }
    await forget_queued(settings)
    processes = AppProcesses(folder, environment)
    publisher = CeleryPublisher(settings.redis_url.get_secret_value())
    try:
        yield Fleet(processes, publisher)
    finally:
        await asyncio.to_thread(processes.stop)
        publisher.close()
