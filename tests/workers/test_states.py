"""The state machine: guarded transitions, attempts that were overtaken, and what the sweeper sends again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.bootstrap import Worker
from app.db.session import Database
from app.domain.ingestion.attempts import Attempts
from app.domain.ingestion.heartbeats import Heartbeats
from app.domain.ingestion.ports import Ports
from app.domain.ingestion.process import VersionProcessor
from app.domain.ingestion.purge_repository import StaleWork
from app.domain.ingestion.states import Claim, ClaimLost, Ended, IndexStates
from app.domain.ingestion.sweeper import Sweeper
from app.jobs import IndexGraph, Job, ProcessVersion
from app.parsing.service import FileParser
from app.retrieval.lazy.index import ConceptIndex
from app.settings import Settings
from tests.factories import Tenancy
from tests.workers.uploads import Upload, Uploads
from workers.task import attempt

GRAPH = ("lazy", "graph")


STEPS: tuple[Callable[[IndexStates, Claim], Awaitable[Any]], ...] = (
    lambda states, claim: states.progress(claim, stage="parsing"),
    lambda states, claim: states.begin_merge(claim),
    lambda states, claim: states.finish(claim, "ready"),
    lambda states, claim: states.fail(claim, "code", "sentence"),
    lambda states, claim: states.put_back(claim),
    lambda states, claim: states.hand_back(claim),
)


async def take_step(uploads: Uploads, step: Callable[[IndexStates, Claim], Awaitable[Any]], claim: Claim) -> None:
    async with uploads.database.tenant(uploads.tenant_id) as session:
        await step(IndexStates(session), claim)


@pytest.fixture
async def upload(tenancy: Tenancy, uploads: Uploads) -> Upload:
    return await uploads.add(await tenancy.add_workspace(engines=GRAPH), "Ada met Ben in Lindau.", engines=GRAPH)


async def claim(
    uploads: Uploads, upload: Upload, owner: str, *, lease_seconds: float = 30, max_attempts: int = 3
) -> Any:
    async with uploads.database.tenant(uploads.tenant_id) as session:
        return await IndexStates(session).claim(
            upload.version_id, "lazy", owner, lease_seconds=lease_seconds, max_attempts=max_attempts
        )


async def test_only_one_of_two_workers_gets_a_version(uploads: Uploads, upload: Upload) -> None:
    claims = await asyncio.gather(*(claim(uploads, upload, owner) for owner in "abcd"))
    assert [found is not None for found in claims].count(True) == 1


async def test_an_expired_claim_is_taken_over_and_the_first_owner_can_change_nothing(
    uploads: Uploads, upload: Upload
) -> None:
    first = await claim(uploads, upload, "first", lease_seconds=0)
    second = await claim(uploads, upload, "second")
    assert isinstance(second, Claim)
    assert second.attempt == 2
    for step in STEPS:
        with pytest.raises(ClaimLost):
            await take_step(uploads, step, first)
    beats = Heartbeats(uploads.database, 30)
    assert list(await asyncio.gather(beats.claim(first), beats.claim(second))) == [False, True]


async def test_attempts_that_end_without_a_word_are_counted_and_come_to_an_end(
    worker: Worker, uploads: Uploads, upload: Upload
) -> None:
    """A document that kills its worker each time must not go round for ever."""
    for number in range(3):
        assert isinstance(await claim(uploads, upload, f"owner {number}", lease_seconds=0), Claim)
    assert isinstance(await claim(uploads, upload, "last"), Ended)
    state = await uploads.state(upload)
    assert (state.state, state.error_code) == ("failed", "too_many_attempts")


async def test_a_graph_waits_for_its_text(worker: Worker, uploads: Uploads, upload: Upload) -> None:
    assert await attempt(worker.jobs, upload.index_graph, runs=1) is None
    assert (await uploads.state(upload, "graph")).state == "queued"
    await attempt(worker.jobs, upload.process, runs=1)
    await attempt(worker.jobs, upload.index_graph, runs=1)
    assert (await uploads.state(upload, "graph")).state == "ready"


async def test_a_cancelled_attempt_writes_nothing(worker: Worker, tenancy: Tenancy, uploads: Uploads) -> None:
    text = "\n\n".join(f"# Part {n}\n\nAda Moreau met person {n} in Lindau." for n in range(400))
    upload = await uploads.add(await tenancy.add_workspace(), text, "a.md")
    work = asyncio.create_task(attempt(worker.jobs, upload.process, runs=1))
    await uploads.enters(upload, "embedding")
    async with uploads.database.tenant(uploads.tenant_id) as session:
        assert await IndexStates(session).cancel(upload.version_id, "lazy")
    assert await work is None
    assert (await uploads.state(upload)).state == "cancelled"
    for table in ("passages", "chunks", "live_versions"):
        assert await uploads.count(table, upload) == 0


async def test_a_version_whose_original_is_gone_fails_with_the_reason(
    worker: Worker, uploads: Uploads, upload: Upload
) -> None:
    key = await uploads.scalar("SELECT key FROM blobs WHERE workspace_id = :id", id=upload.workspace_id)
    await uploads.blobs.delete([key])
    assert await attempt(worker.jobs, upload.process, runs=1) is None
    for engine in GRAPH:
        state = await uploads.state(upload, "graph" if engine == "graph" else "lazy")
        assert (state.state, state.error_code) == ("failed", "original_missing")


async def test_the_sweeper_sends_what_stood_still_and_not_again_at_once(
    settings: Settings, uploads: Uploads, upload: Upload
) -> None:
    sent: list[Job] = []

    async def publish(jobs: Sequence[Job]) -> None:
        sent.extend(jobs)

    async def nothing_waits(queue: str) -> int:
        return 0

    database = Database(settings.database_url.get_secret_value(), pool_size=2, publish=publish)
    hasty = settings.model_copy(update={"requeue_after_seconds": 3})
    try:
        await asyncio.sleep(3.1)
        await Sweeper(database, hasty, nothing_waits).sweep()
        mine = [job for job in sent if job.tenant_id == uploads.tenant_id]
        assert mine == [upload.process]  # the graph has to wait for the text
        sent.clear()
        await Sweeper(database, hasty, nothing_waits).sweep()
        assert [job for job in sent if job.tenant_id == uploads.tenant_id] == []
        held = await claim(uploads, upload, "dies", lease_seconds=0)
        await Sweeper(database, hasty, nothing_waits).sweep()
        assert upload.process in sent
        await take_step(uploads, lambda states, claim: states.finish(claim, "ready"), held)
        sent.clear()
        await asyncio.sleep(3.1)
        await Sweeper(database, hasty, nothing_waits).sweep()
        assert [job for job in sent if job.tenant_id == uploads.tenant_id] == [upload.index_graph]
    finally:
        await database.close()


async def test_the_sweeper_adds_nothing_to_a_queue_that_workers_are_behind_with(
    settings: Settings, uploads: Uploads, upload: Upload
) -> None:
    sent: list[Job] = []

    async def publish(jobs: Sequence[Job]) -> None:
        sent.extend(jobs)

    async def long_queue(queue: str) -> int:
        return 100_000

    database = Database(settings.database_url.get_secret_value(), pool_size=2, publish=publish)
    try:
        await asyncio.sleep(0.1)
        await Sweeper(database, settings.model_copy(update={"requeue_after_seconds": 0.05}), long_queue).sweep()
    finally:
        await database.close()
    assert sent == []


async def test_a_backlog_of_one_kind_hides_no_other(uploads: Uploads, upload: Upload) -> None:
    deleted = await uploads.add(upload.workspace_id, "Gone soon.")
    await uploads.begin_deletion(deleted)
    async with uploads.database.system() as session:
        found = await StaleWork(session).list(timedelta(0), 1)
    assert {"queued_lazy", "document"} <= {row.kind for row in found}


async def test_jobs_survive_their_way_through_a_message() -> None:
    for job in (ProcessVersion(uuid4(), uuid4(), uuid4()), IndexGraph(uuid4(), uuid4(), uuid4())):
        assert type(job).parse(job.payload()) == job


async def nobody_waits(queue: str) -> int:
    return 0


async def test_a_long_last_transaction_is_not_taken_for_a_lost_claim(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a version's state is being committed its row is locked, and heartbeats cannot get at it."""
    upload = await uploads.add(await tenancy.add_workspace(), "Ada met Ben in Lindau.")
    finish = IndexStates.finish

    async def finish_slowly(states: IndexStates, *arguments: Any, **options: Any) -> None:
        await finish(states, *arguments, **options)
        await asyncio.sleep(4)

    monkeypatch.setattr(IndexStates, "finish", finish_slowly)
    container = worker.container
    async with aclosing(FileParser()) as parser:
        ports = Ports(
            settings=container.settings.model_copy(update={"lease_seconds": 1.5}),
            database=container.database,
            blobs=container.blobs,
            parser=parser,
            run_aside=asyncio.to_thread,
            leases=container.leases,
            workspaces=container.workspaces,
            lazy_index=ConceptIndex(),
            graph_index=container.graph.index,
            waiting=nobody_waits,
        )
        await VersionProcessor(ports, Attempts(ports)).run(upload.process, "owner")
    assert (await uploads.state(upload)).state == "ready"
