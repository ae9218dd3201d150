"""Real worker processes: many jobs one after another, both pools, batches with bad files, kills and shutdowns."""

import pytest

from tests.factories import Tenancy
from tests.workers.fleet import Fleet
from tests.workers.uploads import Uploads

pytestmark = pytest.mark.acceptance

LOOP_TROUBLE = ("attached to a different loop", "Event loop is closed", "another operation is in progress")


@pytest.mark.parametrize(
    "options", [("--concurrency", "4"), ("--pool", "prefork", "--concurrency", "1")], ids=["threads", "prefork"]
)
async def test_many_jobs_run_in_one_process(
    fleet: Fleet, tenancy: Tenancy, uploads: Uploads, options: tuple[str, ...]
) -> None:
    """C7: connections are bound to a loop, and a child must not use its parent's."""
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    documents = [
        await uploads.add(workspace_id, f"Ship {n} of Captain Ada Moreau left Port Lindau.", engines=("lazy", "graph"))
        for n in range(20)
    ]
    fleet.start_worker(*options)
    await fleet.send([upload.process for upload in documents])
    for engine in ("lazy", "graph"):
        states = await uploads.settled(documents, engine)
        assert [state.error_detail for state in states if state.state != "ready"] == []
    assert [words for words in LOOP_TROUBLE if words in fleet.log()] == []
