"""Every kind of thing that can be left lying is found, counted by a dry run without being touched, and taken care of."""

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.blobs.store import BlobMissing, blob_key
from app.bootstrap import Worker
from app.db.base import TenantId, WorkspaceId
from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.domain.ingestion.leftovers import LeftoverSweeper
from app.domain.ingestion.runner import PURGE_RUNS
from app.domain.ingestion.states import IndexStates
from app.domain.ingestion.sweeper import Sweeper
from app.jobs import ChangeEntities, Job, PurgeDocument, PurgeGraphVersion, PurgeUnownedVersion, RefreshThemes
from app.retrieval.contract import WorkspaceRef
from app.settings import Settings
from tests.factories import Tenancy
from tests.workers.fleet import forget_queued
from tests.workers.uploads import Upload, Uploads
from workers.task import attempt

GRAPH = ("lazy", "graph")
STALE_SECONDS = 3.0


@dataclass
class Broker:
    """Takes what is published, and has nothing waiting."""

    sent: list[Job] = field(default_factory=list)

    async def publish(self, jobs: Sequence[Job]) -> None:
        self.sent += jobs

    async def waiting(self, queue: str) -> int:
        return 0


@pytest.fixture(autouse=True)
async def called_off(settings: Settings) -> None:
    """A sweep takes a limited number of each kind, the longest waiting first: other tests may have left more than that."""
    await forget_queued(settings)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
async def sending(settings: Settings, broker: Broker) -> AsyncIterator[Database]:
    database = Database(settings.database_url.get_secret_value(), pool_size=3, publish=broker.publish)
    yield database
    await database.close()


@pytest.fixture
def sweeper(settings: Settings, sending: Database, broker: Broker) -> Sweeper:
    return Sweeper(sending, settings.model_copy(update={"requeue_after_seconds": STALE_SECONDS}), broker.waiting)


@pytest.fixture
def leftovers(worker: Worker, sending: Database) -> LeftoverSweeper:
    container = worker.container
    return LeftoverSweeper(sending, container.blobs, container.graph.index, age_seconds=3600)


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=GRAPH)


async def indexed(worker: Worker, uploads: Uploads, workspace_id: WorkspaceId, content: str) -> Upload:
    upload = await uploads.add(workspace_id, content, engines=GRAPH)
    await attempt(worker.jobs, upload.process, runs=1)
    await attempt(worker.jobs, upload.index_graph, runs=1)
    assert (await uploads.state(upload, "graph")).state == "ready"
    return upload


async def swept(sweeper: Sweeper, broker: Broker, tenant_id: UUID) -> list[Job]:
    """What a sweep sends for this tenant, after a dry run that finds as much and sends nothing."""
    await asyncio.sleep(STALE_SECONDS + 0.1)
    broker.sent.clear()
    counted = await sweeper.sweep(is_dry_run=True)
    assert broker.sent == []
    assert counted.total == 0
    report = await sweeper.sweep()
    assert all(report.found[kind] >= count for kind, count in counted.found.items())
    return sent_for(broker, tenant_id)


def sent_for(broker: Broker, tenant_id: UUID) -> list[Job]:
    """But for looking at themes, which any change of a workspace's documents is worth."""
    return [job for job in broker.sent if job.tenant_id == tenant_id and not isinstance(job, RefreshThemes)]


async def test_queued_work_whose_messages_are_gone(
    sweeper: Sweeper, broker: Broker, worker: Worker, uploads: Uploads, workspace_id: WorkspaceId
) -> None:
    """No message was ever sent here, as after a flush of Redis."""
    upload = await uploads.add(workspace_id, "Ada met Ben in Lindau.", engines=GRAPH)
    assert await swept(sweeper, broker, uploads.tenant_id) == [upload.process]
    await attempt(worker.jobs, upload.process, runs=1)
    assert await swept(sweeper, broker, uploads.tenant_id) == [upload.index_graph]


async def test_queued_work_whose_worker_died_between_choosing_and_claiming_it(
    sweeper: Sweeper, broker: Broker, worker: Worker, uploads: Uploads, workspace_id: WorkspaceId
) -> None:
    """Its message was used up, and what is sent again must not be passed over as taken."""
    upload = await uploads.add(workspace_id, "Ada met Ben in Lindau.", engines=GRAPH)
    for job in (upload.process, upload.index_graph):
        assert await worker.jobs.choose(job) == job
        assert await worker.jobs.choose(job) is None
        assert await swept(sweeper, broker, uploads.tenant_id) == [job]
        assert await worker.jobs.choose(job) == job
        await attempt(worker.jobs, job, runs=1)
    assert (await uploads.state(upload, "graph")).state == "ready"


async def test_work_whose_lease_has_expired(
    sweeper: Sweeper, broker: Broker, uploads: Uploads, workspace_id: WorkspaceId
) -> None:
    upload = await uploads.add(workspace_id, "Ada met Ben in Lindau.", engines=GRAPH)
    async with uploads.database.tenant(uploads.tenant_id) as session:
        await IndexStates(session).claim(upload.version_id, "lazy", "dies", lease_seconds=0, max_attempts=5)
    assert await swept(sweeper, broker, uploads.tenant_id) == [upload.process]


async def test_a_purge_that_is_stuck(
    sweeper: Sweeper, broker: Broker, worker: Worker, uploads: Uploads, workspace_id: WorkspaceId
) -> None:
    upload = await indexed(worker, uploads, workspace_id, "Ada Moreau met Ben Holm in Lindau.")
    await uploads.scalar(
        "UPDATE index_states SET state = 'failed', cleanliness = 'purging', changed_at = now()"
        " WHERE version_id = :id AND engine = 'graph' RETURNING 1",
        id=upload.version_id,
    )
    purge = PurgeGraphVersion(upload.tenant_id, upload.workspace_id, upload.version_id)
    assert await swept(sweeper, broker, uploads.tenant_id) == [purge]
    await attempt(worker.jobs, purge, runs=1)
    assert await swept(sweeper, broker, uploads.tenant_id) == []


async def test_a_superseded_version_whose_purge_was_lost(
    sweeper: Sweeper, broker: Broker, worker: Worker, uploads: Uploads, workspace_id: WorkspaceId, urls: DatabaseUrls
) -> None:
    old = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau commands the Tonnberg.")
    new = await uploads.replace(old, "Captain Ada Moreau commands the Seeadler.")
    await attempt(worker.jobs, new.process, runs=1)
    # The graph still answers from the old version.
    assert await swept(sweeper, broker, uploads.tenant_id) == [new.index_graph]
    await attempt(worker.jobs, new.index_graph, runs=1)
    purge = PurgeGraphVersion(old.tenant_id, old.workspace_id, old.version_id)
    assert await swept(sweeper, broker, uploads.tenant_id) == [purge]
    await attempt(worker.jobs, purge, runs=1)
    assert await uploads.count("passages", old) == 0
    assert "Tonnberg" not in await uploads.engine_text(workspace_id, urls.engine)
    assert await swept(sweeper, broker, uploads.tenant_id) == []


async def test_what_waits_for_a_busy_workspace_is_sent_once_and_gives_its_slot_back(
    sweeper: Sweeper, broker: Broker, worker: Worker, uploads: Uploads, workspace_id: WorkspaceId
) -> None:
    """Else a long merge would fill the workers with removals that wait, each sweep with more of them."""
    superseded = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau commands the Tonnberg.")
    newer = await uploads.replace(superseded, "Captain Ada Moreau commands the Seeadler.")
    deleted = await indexed(worker, uploads, workspace_id, "Ben Holm keeps the log of the Albatross.")
    for job in (newer.process, newer.index_graph):
        await attempt(worker.jobs, job, runs=1)
    await uploads.begin_deletion(deleted)
    change_id = uuid4()
    await uploads.scalar(
        "INSERT INTO entity_changes (tenant_id, workspace_id, id, kind, state, names, request)"
        " VALUES (:tenant, :workspace, :id, 'undo', 'queued', '{}', CAST(:request AS jsonb)) RETURNING id",
        tenant=uploads.tenant_id, workspace=workspace_id, id=change_id, request=json.dumps({"change_id": str(uuid4())}),
    )  # fmt: skip
    purges: list[Job] = [
        PurgeGraphVersion(uploads.tenant_id, workspace_id, superseded.version_id),
        ChangeEntities(uploads.tenant_id, workspace_id, change_id),
        PurgeDocument(uploads.tenant_id, workspace_id, deleted.document_id),
    ]
    ref = WorkspaceRef(TenantId(uploads.tenant_id), workspace_id, 0)
    async with worker.container.leases.hold(ref, wait_seconds=5):
        assert await swept(sweeper, broker, uploads.tenant_id) == purges
        await sweeper.sweep()
        assert sent_for(broker, uploads.tenant_id) == purges
        for purge in purges:
            assert await attempt(worker.jobs, purge, runs=1) is not None
            assert await attempt(worker.jobs, purge, runs=PURGE_RUNS) is None
    for purge in await swept(sweeper, broker, uploads.tenant_id):
        await attempt(worker.jobs, purge, runs=1)
    assert await swept(sweeper, broker, uploads.tenant_id) == []


async def test_sweepers_side_by_side_have_the_effect_of_one(
    sweeper: Sweeper, broker: Broker, worker: Worker, uploads: Uploads, workspace_id: WorkspaceId
) -> None:
    upload = await uploads.add(workspace_id, "Ada met Ben in Lindau.", engines=GRAPH)
    await asyncio.sleep(STALE_SECONDS + 0.1)
    await asyncio.gather(*(sweeper.sweep() for _ in range(3)))
    mine = sent_for(broker, uploads.tenant_id)
    assert set(mine) == {upload.process}
    await asyncio.gather(*(attempt(worker.jobs, job, runs=1) for job in mine))
    state = await uploads.state(upload)
    assert (state.state, state.attempts) == ("ready", 1)


async def test_engine_rows_of_a_version_that_is_gone(
    leftovers: LeftoverSweeper, broker: Broker, worker: Worker, uploads: Uploads, workspace_id: WorkspaceId,
    urls: DatabaseUrls,
) -> None:  # fmt: skip
    """As a task leaves them that writes after its document was removed."""
    gone = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau robbed the Tonnberg bank.")
    kept = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau left Port Lindau.")
    async with worker.container.database.tenant(uploads.tenant_id) as session:
        await worker.jobs._purger._ports.lazy_index.remove(
            session, (await worker.container.workspaces.open(uploads.tenant_id, workspace_id)).ref, gone.version_id
        )
    await uploads.scalar("DELETE FROM documents WHERE id = :id RETURNING 1", id=gone.document_id)
    job = PurgeUnownedVersion(uploads.tenant_id, workspace_id, gone.version_id)

    counted = await leftovers.sweep(is_dry_run=True)
    assert counted.found["engine_version"] >= 1
    assert broker.sent == []
    await leftovers.sweep()
    assert sent_for(broker, uploads.tenant_id) == [job]
    await attempt(worker.jobs, job, runs=1)
    found = await uploads.engine_text(workspace_id, urls.engine)
    assert "Tonnberg" not in found
    assert str(gone.version_id) not in found
    assert "Lindau" in found
    assert await uploads.count("mentions", kept) > 0
    broker.sent.clear()
    await leftovers.sweep()
    assert sent_for(broker, uploads.tenant_id) == []


async def test_a_version_that_is_there_is_not_taken_for_unowned(
    worker: Worker, uploads: Uploads, workspace_id: WorkspaceId, urls: DatabaseUrls
) -> None:
    upload = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau left Port Lindau.")
    before = await uploads.engine_text(workspace_id, urls.engine)
    job = PurgeUnownedVersion(uploads.tenant_id, workspace_id, upload.version_id)
    assert await attempt(worker.jobs, job, runs=1) is None
    assert await uploads.engine_text(workspace_id, urls.engine) == before


async def test_engine_rows_of_a_workspace_that_is_gone(
    leftovers: LeftoverSweeper, uploads: Uploads, workspace_id: WorkspaceId, urls: DatabaseUrls, worker: Worker
) -> None:
    kept = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau left Port Lindau.")
    gone = WorkspaceId(uuid4())
    connection = await asyncpg.connect(urls.owner)
    try:
        for table in ("lightrag_llm_cache", "lightrag_doc_status"):
            await connection.execute(
                f"INSERT INTO {table} (workspace, id) VALUES ($1, $2)", f"w_{gone.hex}", f"{uuid4()}"
            )
    finally:
        await connection.close()
    counted = await leftovers.sweep(is_dry_run=True)
    assert counted.found["engine_workspace"] >= 1
    assert await uploads.engine_text(gone, urls.engine) != ""
    await leftovers.sweep()
    assert await uploads.engine_text(gone, urls.engine) == ""
    assert "Moreau" in await uploads.engine_text(workspace_id, urls.engine)
    assert await uploads.count("live_versions", kept) == 2


async def test_originals_without_a_row(
    leftovers: LeftoverSweeper, uploads: Uploads, workspace_id: WorkspaceId, settings: Settings
) -> None:
    upload = await uploads.add(workspace_id, "This one has a row.")
    folder = Path(settings.blob_url.removeprefix("file://"))
    owned = await uploads.scalar("SELECT key FROM blobs WHERE workspace_id = :id", id=upload.workspace_id)
    keys = [blob_key(uploads.tenant_id, workspace_id, uuid4()) for _ in range(2)]
    for key in keys:
        (folder / key).write_text("without a row")
    (folder / "readme.txt").write_text("not ours")
    unfinished = folder / f"{keys[0]}#1"
    unfinished.write_text("half")
    for path in (folder / keys[0], folder / owned, folder / "readme.txt", unfinished):
        _make_old(path)

    counted = await leftovers.sweep(is_dry_run=True)
    assert (counted.found["original"], counted.found["upload"]) == (1, 1)
    assert (folder / keys[0]).exists()
    report = await leftovers.sweep()
    assert (report.handled["original"], report.handled["upload"]) == (1, 1)
    assert [path.exists() for path in (folder / keys[0], unfinished)] == [False, False]
    # An upload that is under way has no row yet.
    assert all(path.exists() for path in (folder / keys[1], folder / owned, folder / "readme.txt"))
    with pytest.raises(BlobMissing):
        _ = [piece async for piece in uploads.blobs.stream(keys[0])]


async def test_temporary_folders_of_killed_workers(
    leftovers: LeftoverSweeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, young, foreign = (tmp_path / name for name in ("trellis-original-a", "trellis-parse-b", "somebody-else"))
    for folder in (old, young, foreign):
        folder.mkdir()
        (folder / "original").write_text("text")
    for folder in (old, foreign):
        _make_old(folder)
    assert (await leftovers.sweep(is_dry_run=True)).found["scratch"] == 1
    assert old.exists()
    await leftovers.sweep()
    assert [folder.exists() for folder in (old, young, foreign)] == [False, True, True]


async def test_an_age_that_is_not_reached_spares_everything(
    worker: Worker, sending: Database, uploads: Uploads, workspace_id: WorkspaceId, settings: Settings
) -> None:
    key = blob_key(uploads.tenant_id, workspace_id, uuid4())
    await uploads.add(workspace_id, "Makes the folder.")
    path = Path(settings.blob_url.removeprefix("file://")) / key
    path.write_text("young")
    patient = LeftoverSweeper(
        sending, worker.container.blobs, worker.container.graph.index, timedelta(days=1).total_seconds()
    )
    await patient.sweep()
    assert path.exists()


def _make_old(path: Path) -> None:
    os.utime(path, (1, 1))
