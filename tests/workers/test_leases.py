"""Who may write a workspace, and what happens to a holder that slept, died, or lost the database."""

import asyncio
import time
from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import text

from app.db.base import WorkspaceId
from app.db.session import Database
from app.domain.ingestion.keepalive import kept_alive
from app.domain.ingestion.lease_repository import RELEASE
from app.domain.ingestion.leases import WorkspaceLeases, confirm
from app.retrieval.contract import LeaseLost, WorkspaceBusy, WorkspaceRef
from app.settings import Settings
from tests.factories import Tenancy
from tests.workers.uploads import Uploads

PARK = "UPDATE index_states SET stage = 'waiting_for_workspace' WHERE version_id = :version_id AND engine = 'graph'"


class Lost(Exception):
    pass


def stand_still(seconds: float) -> None:
    """Block the loop, as a long computation would."""
    time.sleep(seconds)


@pytest.fixture
async def ref(tenancy: Tenancy) -> WorkspaceRef:
    return WorkspaceRef(tenancy.tenant_id, WorkspaceId(await tenancy.add_workspace()), 0)


async def test_a_workspace_has_one_writer_at_a_time(database: Database, ref: WorkspaceRef) -> None:
    leases = WorkspaceLeases(database, 30)
    async with leases.hold(ref, wait_seconds=0) as first:
        with pytest.raises(WorkspaceBusy):
            async with leases.hold(ref, wait_seconds=0.3):
                pass
    async with leases.hold(ref, wait_seconds=0) as second:
        assert second.epoch > first.epoch


async def test_a_lease_is_free_again_after_an_error_inside(database: Database, ref: WorkspaceRef) -> None:
    leases = WorkspaceLeases(database, 30)
    with pytest.raises(ZeroDivisionError):
        async with leases.hold(ref, wait_seconds=0):
            raise ZeroDivisionError
    async with leases.hold(ref, wait_seconds=0):
        pass


async def test_who_parks_while_the_lease_is_given_back_is_called(
    settings: Settings, uploads: Uploads, tenancy: Tenancy
) -> None:
    """The release has looked before the version was parked, and the version before the release was committed."""
    upload = await uploads.add(
        await tenancy.add_workspace(engines=("lazy", "graph")), "Ada.", engines=("lazy", "graph")
    )
    ref = WorkspaceRef(upload.tenant_id, upload.workspace_id, 0)
    called: list[object] = []

    async def publish(jobs: Sequence[object]) -> None:
        called.extend(jobs)

    database = Database(settings.database_url.get_secret_value(), pool_size=3, publish=publish)
    try:
        leases = WorkspaceLeases(database, 30)
        lease = await leases.take(ref)
        assert lease is not None
        values = {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id, "owner": lease.owner}
        async with database.tenant(ref.tenant_id) as session:
            await session.execute(RELEASE, values)
            async with database.tenant(ref.tenant_id) as other:
                await other.execute(text(PARK), {"version_id": upload.version_id})
            parked = asyncio.create_task(leases.wake_next(ref))
            assert not (await asyncio.wait([parked], timeout=0.3))[0]
        await parked
        assert called == [upload.index_graph]
    finally:
        await database.close()


async def test_a_holder_that_overslept_is_fenced(database: Database, ref: WorkspaceRef) -> None:
    sleeper = await WorkspaceLeases(database, 0.2).take(ref)
    assert sleeper is not None
    await asyncio.sleep(0.4)
    async with WorkspaceLeases(database, 30).hold(ref, wait_seconds=0):
        with pytest.raises(LeaseLost):
            async with database.tenant(ref.tenant_id) as session:
                await confirm(session, sleeper)


async def test_a_lease_that_nobody_took_is_kept_by_a_slow_holder(database: Database, ref: WorkspaceRef) -> None:
    """A loop that stood still for longer than the lease goes on, for the row says that it still has the right."""
    async with WorkspaceLeases(database, 0.5).hold(ref, wait_seconds=0) as lease:
        stand_still(1.2)
        await asyncio.sleep(0.5)
        async with database.tenant(ref.tenant_id) as session:
            await confirm(session, lease)


async def test_work_stops_when_its_lease_is_gone() -> None:
    async def refuse() -> bool:
        return False

    with pytest.raises(Lost):
        async with kept_alive(refuse, 0.3, Lost):
            await asyncio.sleep(60)


async def test_work_goes_on_while_the_database_is_away_for_less_than_the_lease() -> None:
    answers: Iterator[OSError | bool] = iter([OSError(), OSError(), True])

    async def extend() -> bool:
        answer = next(answers, True)
        if isinstance(answer, OSError):
            raise answer
        return answer

    async with kept_alive(extend, 1.2, Lost):
        await asyncio.sleep(1.8)


async def test_work_stops_when_the_database_stays_away() -> None:
    async def extend() -> bool:
        raise OSError

    with pytest.raises(Lost):
        async with kept_alive(extend, 0.6, Lost):
            await asyncio.sleep(60)


async def test_a_time_limit_inside_is_not_taken_for_a_lost_lease() -> None:
    async def extend() -> bool:
        return True

    with pytest.raises(TimeoutError):
        async with kept_alive(extend, 5, Lost), asyncio.timeout(0.1):
            await asyncio.sleep(60)


async def test_a_long_last_transaction_is_not_taken_for_a_lost_lease(database: Database, ref: WorkspaceRef) -> None:
    """The engine's write locks the lease row until it commits, and heartbeats cannot get at it."""
    async with (
        WorkspaceLeases(database, 1).hold(ref, wait_seconds=0) as lease,
        database.tenant(ref.tenant_id) as session,
    ):
        await confirm(session, lease)
        await asyncio.sleep(3.5)


async def test_those_of_one_process_take_turns_and_a_full_line_turns_away(
    database: Database, ref: WorkspaceRef
) -> None:
    leases = WorkspaceLeases(database, 30)
    order: list[str] = []

    async def write(name: str, seconds: float) -> None:
        async with leases.hold(ref, wait_seconds=20, longest_line=1):
            order.append(name)
            await asyncio.sleep(seconds)

    async with asyncio.TaskGroup() as group:
        group.create_task(write("first", 0.3))
        await asyncio.sleep(0.1)
        group.create_task(write("second", 0))
        await asyncio.sleep(0)
        with pytest.raises(WorkspaceBusy):
            await write("third", 0)
        assert order == ["first"]
    assert order == ["first", "second"]
