"""From an original to the lazy index: what is written, what a failure says, and that repeating has no second effect."""

from app.bootstrap import Worker
from tests.factories import Tenancy
from tests.workers.uploads import Uploads
from workers.task import attempt

TEXT = """# Pumps

The Helios pump was built by Marta Lindqvist in Uppsala. It cools the reactor of the Aurora plant.

# Valves

The valve V-12 belongs to the Helios pump. Marta Lindqvist replaced it in 2019.
"""


async def test_a_document_becomes_queryable(worker: Worker, tenancy: Tenancy, uploads: Uploads) -> None:
    upload = await uploads.add(await tenancy.add_workspace(), TEXT, "pumps.md")
    assert await attempt(worker.jobs, upload.process, runs=1) is None
    state = await uploads.state(upload)
    assert (state.state, state.stage, state.error_code) == ("ready", "done", None)
    assert state.stage_ms.keys() >= {"parse", "embed", "index"}
    assert state.lease_expires_at is None
    passages = await uploads.count("passages", upload)
    assert passages == 2
    assert await uploads.count("passage_vectors_offline_use_512d", upload) == passages
    assert await uploads.count("live_versions", upload) == 1
    assert await uploads.count("chunks", upload) == 1
    assert (
        await uploads.scalar("SELECT version FROM corpus_versions WHERE workspace_id = :id", id=upload.workspace_id)
        == 1
    )


async def test_a_job_that_is_delivered_twice_has_one_effect(worker: Worker, tenancy: Tenancy, uploads: Uploads) -> None:
    upload = await uploads.add(await tenancy.add_workspace(), TEXT, "pumps.md")
    for runs in (1, 2):
        await attempt(worker.jobs, upload.process, runs=runs)
    assert (await uploads.state(upload)).attempts == 1
    assert await uploads.count("passages", upload) == 2
