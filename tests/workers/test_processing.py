"""From an original to the lazy index: what is written, what a failure says, and that repeating has no second effect."""

import asyncio

import asyncpg

from app.bootstrap import Worker
from app.db.provision import DatabaseUrls
from tests.cluster import Cluster
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


async def test_equal_passages_are_embedded_once(worker: Worker, tenancy: Tenancy, uploads: Uploads) -> None:
    workspace_id = await tenancy.add_workspace()
    spent: list[int] = []
    for name in ("pumps.md", "pumps.md"):
        upload = await uploads.add(workspace_id, TEXT, name)
        await attempt(worker.jobs, upload.process, runs=1)
        used = "SELECT coalesce(sum(tokens_in), 0) FROM usage_events WHERE version_id = :version"
        spent.append(await uploads.scalar(used, version=upload.version_id))
        assert await uploads.count("passage_vectors_offline_use_512d", upload) == 2
    assert spent[0] > 0
    assert spent[1] == 0


async def test_connections_cut_in_the_middle_cost_an_attempt_at_most(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, cluster: Cluster, urls: DatabaseUrls
) -> None:
    """C15."""
    text = "\n\n".join(f"# Part {n}\n\nAda Moreau met person {n} in Lindau." for n in range(300))
    upload = await uploads.add(await tenancy.add_workspace(), text, "a.md")
    work = asyncio.create_task(attempt(worker.jobs, upload.process, runs=1))
    await uploads.enters(upload, "embedding")
    admin = await asyncpg.connect(cluster.admin_url)
    for _ in range(10):
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND usename = 'trellis_app'",
            urls.app.rsplit("/", 1)[1],
        )
        await asyncio.sleep(0.1)
    await admin.close()
    is_repeated = await work is not None
    state = await uploads.state(upload)
    if is_repeated:
        assert (state.state, state.error_code) == ("queued", "database_unavailable")
    elif state.state == "running":
        # The last connection that was cut was to tell how the attempt ended: its lease runs out by itself.
        await uploads.scalar(
            "UPDATE index_states SET lease_expires_at = now() WHERE version_id = :id RETURNING 1", id=upload.version_id
        )
    if state.state != "ready":
        await attempt(worker.jobs, upload.process, runs=2)
    assert (await uploads.state(upload)).state == "ready"
    assert await uploads.count("passages", upload) == 300
