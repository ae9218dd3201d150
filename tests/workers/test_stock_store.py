"""On LightRAG's own storages, with the graph in tables or in Apache AGE, a merge that is cut off may leave half of itself: never trusted, removed, and proven gone."""

from collections.abc import AsyncIterator

import pytest

from app.bootstrap import Worker, open_worker
from app.db.base import WorkspaceId
from app.db.provision import DatabaseUrls
from app.jobs import PurgeGraphVersion
from app.retrieval.contract import SearchRequest
from app.settings import Settings
from tests.factories import Tenancy
from tests.fakes.stub_process import StubServer
from tests.workers.reports import CHUNKS, GRAPH, SMALL_CHUNKS, extracted_text, retry, run_graph
from tests.workers.uploads import Upload, Uploads
from workers.task import attempt

# The text names this often enough that merging asks for summaries, which the stub is told to take its time for.
SUMMARIES = SMALL_CHUNKS | {"summary_after_fragments": 2}
SLOW_SUMMARY = {"kind": "summary", "delay_ms": 30_000, "times": 99}


pytestmark = pytest.mark.parametrize(
    "graph_store", ["table", pytest.param("age", marks=pytest.mark.age)], scope="module"
)


@pytest.fixture(scope="module")
async def worker(settings: Settings) -> AsyncIterator[Worker]:
    async with open_worker(settings.model_copy(update={"graph_store": "stock"})) as worker:
        yield worker


@pytest.fixture
async def stub_workspace(tenancy: Tenancy, stub_chat: str, graph_store: str) -> WorkspaceId:
    return await tenancy.add_workspace(engines=GRAPH, chat=stub_chat, settings=SMALL_CHUNKS, graph_store=graph_store)


async def nothing_answers(worker: Worker, uploads: Uploads, workspace_id: WorkspaceId) -> bool:
    workspace = await worker.container.workspaces.open(uploads.tenant_id, workspace_id)
    for mode in ("naive", "mix"):
        request = SearchRequest("Whom did Captain Marker1 meet?", mode, include_partial=True)
        found = await worker.container.graph.search.search(workspace, request)
        if found.passages or found.entities or found.relations:
            return False
    return True


async def ready_after_retry(worker: Worker, uploads: Uploads, upload: Upload) -> bool:
    assert await retry(uploads, upload)
    assert await run_graph(worker, upload) is None
    return (await uploads.state(upload, "graph")).state == "ready"


async def test_a_graph_is_written_and_removed(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId, urls: DatabaseUrls
) -> None:
    upload = await extracted_text(worker, uploads, stub_workspace)
    workspace = await worker.container.workspaces.open(uploads.tenant_id, stub_workspace)
    assert not worker.container.graph.index.is_atomic(workspace.ref)
    assert await run_graph(worker, upload) is None
    assert (await uploads.state(upload, "graph")).state == "ready"
    await uploads.begin_deletion(upload)
    assert await attempt(worker.jobs, upload.purge, runs=1) is None
    assert await uploads.engine_text(stub_workspace, urls.engine) == ""


@pytest.mark.parametrize("at", ["summaries", 0.02, 0.1, 0.2, 0.4])
async def test_a_merge_that_is_cut_off_is_untrusted_then_purged_and_can_be_retried(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, urls: DatabaseUrls, stub_chat: str, stub_llm: StubServer,
    graph_store: str, at: str | float,
) -> None:  # fmt: skip
    limit = 5.0 if isinstance(at, str) else at
    workspace_id = await tenancy.add_workspace(
        engines=GRAPH, chat=stub_chat, settings=SUMMARIES | {"merge_timeout_seconds": limit}, graph_store=graph_store
    )
    upload = await extracted_text(worker, uploads, workspace_id)
    stub_llm.set_faults(SLOW_SUMMARY)
    assert await run_graph(worker, upload) is None
    state = await uploads.state(upload, "graph")
    assert (state.state, state.error_code) == ("failed", "timeout_may_have_partial_index"), stub_llm.stats()
    assert state.cleanliness == "purging"
    assert (await uploads.engine_rows(workspace_id, urls.engine) != {}) or at != "summaries"
    assert await nothing_answers(worker, uploads, workspace_id)
    assert not await retry(uploads, upload)

    calls = stub_llm.stats()["calls"]
    purge = PurgeGraphVersion(upload.tenant_id, upload.workspace_id, upload.version_id)
    assert await attempt(worker.jobs, purge, runs=1) is None
    assert (await uploads.state(upload, "graph")).cleanliness == "clean"
    assert await uploads.engine_rows(workspace_id, urls.engine) == {}
    assert stub_llm.stats()["calls"] == calls

    stub_llm.reset()
    await uploads.change_settings(workspace_id, SUMMARIES)
    assert await ready_after_retry(worker, uploads, upload)
    assert stub_llm.stats()["calls"].get("extract", 0) == 0
    assert not await nothing_answers(worker, uploads, workspace_id)
    assert (await uploads.state(upload, "graph")).chunks_done == CHUNKS


async def test_a_queued_purge_is_sent_with_the_failure(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, stub_chat: str, stub_llm: StubServer, graph_store: str
) -> None:
    workspace_id = await tenancy.add_workspace(
        engines=GRAPH, chat=stub_chat, settings=SUMMARIES | {"merge_timeout_seconds": 0.05}, graph_store=graph_store
    )
    upload = await extracted_text(worker, uploads, workspace_id)
    before = await worker.container.redis.llen("purge")
    await run_graph(worker, upload)
    assert await worker.container.redis.llen("purge") == before + 1
