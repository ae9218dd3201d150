"""A long extraction does not keep the only slot of a worker from documents that wait to be read."""

import pytest

from app.db.session import Database
from app.settings import Settings
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import run_stub
from tests.workers.fleet import Fleet
from tests.workers.reports import GRAPH, SMALL_CHUNKS, report
from tests.workers.uploads import OPEN, Uploads, until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

CHUNKS = 12


async def test_documents_take_turns_in_the_only_slot(
    fleet: Fleet, tenancy: Tenancy, uploads: Uploads, owner_database: Database, settings: Settings
) -> None:
    with run_stub("--llm-ms", "1000") as stub:
        chat = await register_stub(stub, owner_database, settings, timeout_seconds=60, max_concurrency=1)
        workspace_id = await tenancy.add_workspace(engines=GRAPH, chat=chat, settings=SMALL_CHUNKS)
        long = await uploads.add(workspace_id, report(CHUNKS), "long.md", engines=GRAPH)
        fleet.start_worker("--concurrency", "1")
        await fleet.send([long.process])
        await until(lambda: stub.stats()["calls"].get("extract", 0) >= 1)
        quick = await uploads.add(workspace_id, "Ada met Ben in Lindau.", "quick.txt")
        await fleet.send([quick.process])
        [state] = await uploads.settled([quick])
        assert state.state == "ready"
        assert (await uploads.state(long, "graph")).state in OPEN
        [state] = await uploads.settled([long], "graph")
        assert (state.state, state.attempts, state.chunks_done) == ("ready", 1, CHUNKS)
        assert stub.stats()["calls"]["extract"] == CHUNKS
        assert stub.stats()["repeated_extractions"] == 0
    handed_back = "SELECT count(*) FROM index_transitions WHERE version_id = :id AND reason = 'handed_back'"
    assert await uploads.scalar(handed_back, id=long.version_id) == 1
