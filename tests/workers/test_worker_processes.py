"""Real worker processes: both pools, batches with bad files, two workers on one workspace, kills and shutdowns."""

import asyncio
import os
import signal
from io import BytesIO
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from app.db.base import WorkspaceId
from app.db.session import Database
from app.devstack.processes import Child
from app.retrieval.contract import Engine
from app.settings import Settings
from tests.cluster import RUN_FOLDER
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import run_stub
from tests.workers.fleet import Fleet, open_fleet
from tests.workers.uploads import Upload, Uploads, until
from workers.schedule import SWEEP

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

GRAPH: tuple[Engine, ...] = ("lazy", "graph")
SMALL_CHUNKS = {"chunk_strategy": "sentence", "chunk_tokens": 200}
LOOP_TROUBLE = ("attached to a different loop", "Event loop is closed", "another operation is in progress")
TROUBLE = (*LOOP_TROUBLE, "job_crashed", "stray_error", "usage_not_recorded")


def letter(number: int, sections: int = 1) -> str:
    filler = " It was noted in the log of the yard and read again in the evening by the people on watch." * 3
    return "\n\n".join(
        f"# Letter {number}.{n}\n\nShip Albatross{number}x{n} of Captain Ada Moreau left Port Lindau{n}.{filler}"
        for n in range(sections)
    )


def scanned_pdf() -> bytes:
    """A page with a drawing and no text."""
    target = BytesIO()
    canvas = Canvas(target)
    canvas.rect(100, 100, 300, 200, fill=1)
    canvas.save()
    return target.getvalue()


async def all_ready(uploads: Uploads, documents: list[Upload], *engines: str) -> None:
    for engine in engines:
        states = await uploads.settled(documents, "graph" if engine == "graph" else "lazy")
        assert [(state.state, state.error_detail) for state in states if state.state != "ready"] == []


def children_of(worker: Child) -> list[int]:
    """Ids of the processes that a worker has forked."""
    pid = worker.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(("pool", "concurrency"), [("threads", "4"), ("processes", "2")])
async def test_many_jobs_run_in_one_process(
    fleet: Fleet, tenancy: Tenancy, uploads: Uploads, pool: str, concurrency: str
) -> None:
    """C7: connections are bound to a loop, and a child must not use its parent's."""
    workspace_id = await tenancy.add_workspace(engines=GRAPH)
    documents = [await uploads.add(workspace_id, letter(n), "a.md", engines=GRAPH) for n in range(20)]
    worker = fleet.start_worker("--pool", pool, "--concurrency", concurrency)
    await fleet.send([upload.process for upload in documents])
    await all_ready(uploads, documents, "lazy", "graph")
    assert len(children_of(worker)) == (int(concurrency) if pool == "processes" else 0)
    assert [words for words in TROUBLE if words in fleet.log()] == []


async def test_bad_files_of_a_batch_fail_with_reasons_and_the_others_are_ready(
    fleet: Fleet, tenancy: Tenancy, uploads: Uploads
) -> None:
    """C17."""
    workspace_id = await tenancy.add_workspace(engines=GRAPH)
    bad = [
        await uploads.add(workspace_id, b"", "empty.txt", engines=GRAPH),
        await uploads.add(workspace_id, b"  \n\t \n", "spaces.txt", engines=GRAPH),
        await uploads.add(workspace_id, scanned_pdf(), "scan.pdf", engines=GRAPH),
    ]
    good = [await uploads.add(workspace_id, letter(n), f"{n}.md", engines=GRAPH) for n in range(3)]
    fleet.start_worker()
    await fleet.send([upload.process for upload in (*bad, *good)])
    await all_ready(uploads, good, "lazy", "graph")
    for engine in ("lazy", "graph"):
        states = await uploads.settled(bad, "graph" if engine == "graph" else "lazy")
        assert [state.state for state in states] == ["failed"] * 3
        assert [state.error_code for state in states] == ["empty_document", "blank_document", "no_text_layer"]
        assert all(state.error_detail for state in states)


async def test_two_workers_on_one_workspace_extract_every_chunk_once(
    fleet: Fleet, tenancy: Tenancy, uploads: Uploads, owner_database: Database, settings: Settings
) -> None:
    """C6."""
    with run_stub("--llm-ms", "150") as stub:
        chat = await register_stub(stub, owner_database, settings, timeout_seconds=30, max_retries=2)
        workspace_id = await tenancy.add_workspace(engines=GRAPH, chat=chat, settings=SMALL_CHUNKS)
        documents = [await uploads.add(workspace_id, letter(n, 3), f"{n}.md", engines=GRAPH) for n in range(8)]
        for _ in range(2):
            fleet.start_worker("--concurrency", "2")
        await fleet.send([upload.process for upload in documents])
        await all_ready(uploads, documents, "lazy", "graph")
        assert stub.stats()["calls"]["extract"] == 8 * 3
        assert stub.stats()["repeated_extractions"] == 0
    assert [(await uploads.state(upload, "graph")).attempts for upload in documents] == [1] * 8


async def test_another_worker_finishes_what_a_killed_one_began(
    fleet: Fleet, tenancy: Tenancy, uploads: Uploads, owner_database: Database, settings: Settings
) -> None:
    """C16: with short leases, the sweeper sends the work again without any upload."""
    with run_stub("--llm-ms", "400") as stub:
        chat = await register_stub(stub, owner_database, settings, timeout_seconds=30)
        workspace_id = await tenancy.add_workspace(engines=GRAPH, chat=chat, settings=SMALL_CHUNKS)
        documents = [await uploads.add(workspace_id, letter(n, 6), f"{n}.md", engines=GRAPH) for n in range(3)]
        victim = fleet.start_worker("--concurrency", "2")
        fleet.processes.start_beat()
        await fleet.send([upload.process for upload in documents])
        await until(lambda: stub.stats()["calls"].get("extract", 0) >= 4)
        os.killpg(victim.process.pid, signal.SIGKILL)
        victim.process.wait()
        fleet.processes.children.remove(victim)
        fleet.start_worker()
        await all_ready(uploads, documents, "lazy", "graph")
        # What was being asked at the kill is asked again, and nothing else.
        assert stub.stats()["repeated_extractions"] <= 16
        assert stub.stats()["calls"]["extract"] - stub.stats()["repeated_extractions"] == 3 * 6
    assert {await uploads.count("live_versions", upload) for upload in documents} == {2}


async def test_a_worker_told_to_stop_hands_its_work_back_at_once(
    fleet: Fleet, tenancy: Tenancy, uploads: Uploads, owner_database: Database, settings: Settings
) -> None:
    with run_stub("--llm-ms", "3000") as stub:
        chat = await register_stub(stub, owner_database, settings, timeout_seconds=30)
        workspace_id = await tenancy.add_workspace(engines=GRAPH, chat=chat, settings=SMALL_CHUNKS)
        upload = await uploads.add(workspace_id, letter(1, 20), "1.md", engines=GRAPH)
        worker = fleet.start_worker()
        await fleet.send([upload.process])
        await until(lambda: stub.stats()["calls"].get("extract", 0) > 0)
        await asyncio.to_thread(worker.stop)
        state = await uploads.state(upload, "graph")
        assert (state.state, state.attempts, state.lease_expires_at) == ("queued", 0, None)
    with run_stub() as stub:
        await uploads.point_model(owner_database, chat, stub.base_url)
        # Nobody sweeps here: the message itself went back.
        fleet.start_worker()
        await all_ready(uploads, [upload], "graph")


async def test_tenants_side_by_side_in_one_process_do_not_mix(
    fleet: Fleet, tenancy: Tenancy, other_tenancy: Tenancy, uploads: Uploads
) -> None:
    """C2."""
    theirs = Uploads(other_tenancy.database, uploads.blobs, other_tenancy.tenant_id)
    places: list[tuple[Uploads, WorkspaceId]] = [
        (uploads, await tenancy.add_workspace(engines=GRAPH)),
        (theirs, await other_tenancy.add_workspace(engines=GRAPH)),
    ]
    documents: list[list[Upload]] = [[], []]
    for n in range(10):
        for side, (place, workspace_id) in enumerate(places):
            text = f"Side{'AB'[side]} number {n}: Doctor Marker{'AB'[side]}{n} works in Lindau."
            documents[side].append(await place.add(workspace_id, text, engines=GRAPH))
    fleet.start_worker("--concurrency", "4")
    await fleet.send([upload.process for pair in zip(*documents, strict=True) for upload in pair])
    for (place, workspace_id), mine, foreign in zip(places, documents, "BA", strict=True):
        await all_ready(place, mine, "lazy", "graph")
        found = await place.engine_text(workspace_id, settings_url(fleet))
        assert f"Side{foreign}" not in found
        assert f"Marker{foreign}" not in found


def settings_url(fleet: Fleet) -> str:
    return fleet.processes.environment["TRELLIS_ENGINE_DATABASE_URL"]


async def test_eight_workers_start_at_once_without_an_error_in_the_database(settings: Settings, tmp_path: Path) -> None:
    """C13: no worker runs DDL, and each can do its first job."""
    log = Path(os.environ[RUN_FOLDER]) / "logs" / "postgres.log"
    before = log.stat().st_size
    database = settings.database_url.get_secret_value().rsplit("/", 1)[1]
    async with open_fleet(settings, tmp_path) as fleet:
        for n in range(8):
            fleet.start_worker("--concurrency", "1", "--queues", f"solo{n}")
        for n in range(8):
            await fleet.send_task(SWEEP, queue=f"solo{n}")
        while fleet.log().count(f"Task {SWEEP}") < 16:  # received, succeeded
            fleet.processes.check()
            await asyncio.sleep(0.2)
        assert fleet.log().count("succeeded") == 8
    with log.open() as file:
        file.seek(before)
        lines = [line for line in file if f"@{database} " in line]
    assert [line for line in lines if "ERROR" in line or "FATAL" in line] == []
