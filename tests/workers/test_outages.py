"""An outage of a server is told as such, once, and never as a fault of ours."""

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest
from celery.exceptions import Retry
from kombu.exceptions import OperationalError
from redis.exceptions import ConnectionError as RedisGone
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from structlog.testing import capture_logs

from app.bootstrap import Worker
from app.db.provision import DatabaseUrls
from app.db.session import is_unavailable
from app.jobs import ProcessVersion
from tests.cluster import Cluster
from tests.factories import Tenancy
from tests.workers.uploads import Uploads
from workers.task import _repeat, _report, attempt


async def test_connections_that_are_cut_are_one_event_of_the_log(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, cluster: Cluster, urls: DatabaseUrls
) -> None:
    text = "\n\n".join(f"# Part {n}\n\nAda Moreau met person {n} in Lindau." for n in range(300))
    upload = await uploads.add(await tenancy.add_workspace(), text, "a.md")
    admin = await asyncpg.connect(cluster.admin_url)
    with capture_logs() as lines:
        work = asyncio.create_task(attempt(worker.jobs, upload.process, runs=1))
        await uploads.enters(upload, "embedding")
        while not work.done():
            await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND usename = 'trellis_app'",
                urls.app.rsplit("/", 1)[1],
            )
            await asyncio.sleep(0.01)
    await admin.close()
    events = [line["event"] for line in lines]
    assert "job_crashed" not in events
    assert events.count("job_interrupted") == 1


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(),
        asyncpg.CannotConnectNowError(),
        asyncpg.AdminShutdownError(),
        asyncpg.CrashShutdownError(),
        asyncpg.InternalClientError(),
        PoolTimeout(),
        asyncpg.DiskFullError(),
        asyncpg.OutOfMemoryError(),
        asyncpg.TooManyConnectionsError(),
        asyncpg.PostgresIOError(),
        asyncpg.ReadOnlySQLTransactionError(),
        *(DBAPIError("", {}, error) for error in (asyncpg.DiskFullError(), asyncpg.ReadOnlySQLTransactionError())),
    ],
    ids=lambda error: type(getattr(error, "orig", None) or error).__name__,
)
def test_errors_of_a_database_that_is_away(error: Exception) -> None:
    assert is_unavailable(error)


@pytest.mark.parametrize(
    ("error", "event"),
    [(RedisGone(), "job_interrupted"), (TimeoutError(), "job_interrupted"), (ValueError("text"), "job_crashed")],
)
def test_what_is_an_outage_and_what_a_fault(error: Exception, event: str) -> None:
    with capture_logs() as lines:
        _report(error)
    [line] = lines
    assert line["event"] == event
    assert "text" not in str(line)


class Delivery:
    """A task whose message can be sent again, or not."""

    def __init__(self, send: Callable[[], Exception]) -> None:
        self._send = send

    def retry(self, **_: Any) -> Exception:
        return self._send()


def test_a_broker_that_is_away_ends_a_delivery_quietly_and_the_sweeper_sends_the_job(
    upload_job: ProcessVersion,
) -> None:
    def refuse() -> Exception:
        raise OperationalError

    with capture_logs() as lines:
        _repeat(Delivery(refuse), upload_job, 3.0)
    assert [line["event"] for line in lines] == ["jobs_not_published"]
    with pytest.raises(Retry):
        _repeat(Delivery(Retry), upload_job, 3.0)


@pytest.fixture
async def upload_job(tenancy: Tenancy, uploads: Uploads) -> ProcessVersion:
    return (await uploads.add(await tenancy.add_workspace(), "Ada met Ben.")).process
