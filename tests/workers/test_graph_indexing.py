"""From chunks to the graph: honest partials, retries that pay for the missing only, time limits that leave nothing."""

from app.bootstrap import Worker
from app.db.base import WorkspaceId
from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.domain.ingestion.leases import WorkspaceLeases
from app.jobs import PurgeGraphVersion
from app.settings import Settings
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer
from tests.workers.reports import CHUNKS, GRAPH, SMALL_CHUNKS, chunk_failures, extracted_text, retry, run_graph
from tests.workers.uploads import Uploads
from workers.task import attempt


async def test_a_graph_becomes_ready_and_its_calls_are_counted(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId, stub_llm: StubServer
) -> None:
    upload = await extracted_text(worker, uploads, stub_workspace)
    assert await run_graph(worker, upload) is None
    state = await uploads.state(upload, "graph")
    assert (state.state, state.cleanliness, state.chunks_done, state.chunks_total) == ("ready", "clean", CHUNKS, CHUNKS)
    assert state.model_calls == stub_llm.stats()["calls"]["extract"] == CHUNKS
    assert state.tokens_in > 0
    assert await uploads.count("live_versions", upload) == 2
    spent = "SELECT sum(calls) FROM usage_events WHERE version_id = :version AND purpose = 'extract'"
    assert await uploads.scalar(spent, version=upload.version_id) == CHUNKS


async def test_nonsense_for_one_chunk_makes_a_partial_index_and_a_retry_pays_for_that_chunk(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId, stub_llm: StubServer
) -> None:
    """C18."""
    upload = await extracted_text(worker, uploads, stub_workspace)
    stub_llm.set_faults(
        {"match": "Marker3", "kind": "extract", "body": "As you wish: nothing of note here.", "times": 9}
    )
    assert await run_graph(worker, upload) is None
    state = await uploads.state(upload, "graph")
    assert (state.state, state.error_code) == ("partial", "partial_extraction")
    assert (state.chunks_done, state.chunks_total) == (CHUNKS - 1, CHUNKS)
    assert state.error_detail
    assert f"1 of {CHUNKS} chunks" in state.error_detail
    before = stub_llm.stats()["calls"]["extract"]
    stub_llm.reset()
    assert await retry(uploads, upload)
    await run_graph(worker, upload)
    assert (await uploads.state(upload, "graph")).state == "ready"
    assert stub_llm.stats()["calls"]["extract"] == 1
    assert before == CHUNKS


async def test_a_time_limit_half_way_keeps_what_was_done(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, stub_chat: str, stub_llm: StubServer
) -> None:
    """C19."""
    workspace_id = await tenancy.add_workspace(
        engines=GRAPH, chat=stub_chat, settings=SMALL_CHUNKS | {"extract_timeout_seconds": 6}
    )
    upload = await extracted_text(worker, uploads, workspace_id)
    for n in (1, 4):
        stub_llm.set_faults({"match": f"Marker{n} ", "kind": "extract", "delay_ms": 12_000, "times": 1})
    await run_graph(worker, upload)
    state = await uploads.state(upload, "graph")
    assert (state.state, state.chunks_done) == ("partial", CHUNKS - 2)
    assert "extract_timeout" in str(state.error_detail)
    assert await retry(uploads, upload)
    await run_graph(worker, upload)
    assert (await uploads.state(upload, "graph")).state == "ready"
    assert stub_llm.stats()["calls"]["extract"] == CHUNKS + 2


async def test_a_document_of_which_nothing_can_be_extracted_has_failed(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId, stub_llm: StubServer
) -> None:
    upload = await extracted_text(worker, uploads, stub_workspace)
    stub_llm.set_faults({"kind": "extract", "body": "I cannot help with that.", "times": 99})
    assert await run_graph(worker, upload) is None
    state = await uploads.state(upload, "graph")
    assert (state.state, state.error_code, state.cleanliness) == ("failed", "extraction_failed", "clean")
    assert (await uploads.state(upload, "lazy")).state == "ready"


async def test_a_provider_that_is_down_is_asked_again_and_named_in_the_end(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId, stub_llm: StubServer
) -> None:
    """C21."""
    upload = await extracted_text(worker, uploads, stub_workspace)
    stub_llm.set_faults({"kind": "extract", "status": 503, "times": 999})
    delays = [await run_graph(worker, upload) for _ in range(5)]
    assert delays[-1] is None
    assert [delay for delay in delays[:-1] if not delay] == []
    state = await uploads.state(upload, "graph")
    assert (state.state, state.error_code, state.attempts) == ("failed", "model_unavailable", 5)
    assert "503" in str(state.error_detail)
    stub_llm.reset()
    assert await retry(uploads, upload)
    await run_graph(worker, upload)
    assert (await uploads.state(upload, "graph")).state == "ready"
    assert stub_llm.stats()["repeated_extractions"] == 0


async def test_a_chunk_whose_call_fails_is_asked_again_and_only_that_one(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, owner_database: Database, settings: Settings,
    stub_llm: StubServer,
) -> None:  # fmt: skip
    """C21: 429, then 500, then no answer in time, then something that is none, then an answer."""
    chat = await register_stub(stub_llm, owner_database, settings, timeout_seconds=5)
    workspace_id = await tenancy.add_workspace(engines=GRAPH, chat=chat, settings=SMALL_CHUNKS)
    upload = await extracted_text(worker, uploads, workspace_id)
    stub_llm.set_faults(
        {"match": "Marker2 ", "kind": "extract", "status": 429, "times": 1},
        {"match": "Marker2 ", "kind": "extract", "status": 500, "times": 1},
        {"match": "Marker2 ", "kind": "extract", "delay_ms": 20_000, "times": 1},
        {"match": "Marker2 ", "kind": "extract", "page": "no document", "times": 1},
    )
    for reason in ("answered 429", "answered 500", "did not answer within 5 seconds", "no answer"):
        assert await run_graph(worker, upload)
        state = await uploads.state(upload, "graph")
        assert (state.state, state.error_code, state.chunks_done) == ("queued", "model_unavailable", CHUNKS - 1)
        assert f"1 of {CHUNKS} chunks" in str(state.error_detail)
        assert reason in str(state.error_detail)
    assert await run_graph(worker, upload) is None
    assert (await uploads.state(upload, "graph")).state == "ready"
    assert stub_llm.stats()["calls"]["extract"] == CHUNKS + 4


async def test_a_chunk_that_never_gets_an_answer_makes_a_partial_index_and_nothing_stands_in_for_it(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId, stub_llm: StubServer, urls: DatabaseUrls
) -> None:
    upload = await extracted_text(worker, uploads, stub_workspace)
    stub_llm.set_faults(
        {"match": "Marker2 ", "kind": "extract", "status": 429, "times": 99},
        {"match": "Marker4 ", "kind": "extract", "body": "Nothing of note.", "times": 99},
    )
    assert [bool(await run_graph(worker, upload)) for _ in range(5)] == [True, True, True, True, False]
    state = await uploads.state(upload, "graph")
    assert (state.state, state.error_code, state.chunks_done) == ("partial", "partial_extraction", CHUNKS - 2)
    assert await chunk_failures(uploads, upload) == {2: "model_unavailable", 4: "model_nonsense"}
    assert "answered 429" in str(state.error_detail)
    answers = (await uploads.engine_text(stub_workspace, urls.engine)).count("<|COMPLETE|>")
    assert answers == CHUNKS - 2
    calls = stub_llm.stats()["calls"]["extract"]
    assert calls == CHUNKS + 4  # one of nonsense is not asked again by itself
    stub_llm.reset()
    assert await retry(uploads, upload)
    await run_graph(worker, upload)
    assert (await uploads.state(upload, "graph")).state == "ready"
    assert await chunk_failures(uploads, upload) == {}
    assert stub_llm.stats()["calls"]["extract"] == 2


async def test_a_model_that_is_away_is_not_asked_for_every_chunk(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, owner_database: Database, settings: Settings,
    stub_llm: StubServer,
) -> None:  # fmt: skip
    chat = await register_stub(stub_llm, owner_database, settings, max_concurrency=1)
    workspace_id = await tenancy.add_workspace(engines=GRAPH, chat=chat, settings=SMALL_CHUNKS)
    upload = await extracted_text(worker, uploads, workspace_id, chunks=40)
    stub_llm.set_faults({"kind": "extract", "status": 503, "times": 99})
    assert await run_graph(worker, upload)
    assert 2 <= stub_llm.stats()["calls"]["extract"] < 40
    stub_llm.reset()
    assert await run_graph(worker, upload) is None
    assert (await uploads.state(upload, "graph")).state == "ready"


async def test_a_provider_that_refuses_everybody_half_way_keeps_what_was_done(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, owner_database: Database, settings: Settings,
    stub_llm: StubServer,
) -> None:  # fmt: skip
    chat = await register_stub(stub_llm, owner_database, settings, max_concurrency=1)
    workspace_id = await tenancy.add_workspace(engines=GRAPH, chat=chat, settings=SMALL_CHUNKS)
    upload = await extracted_text(worker, uploads, workspace_id)
    stub_llm.set_faults({"match": "Marker3 ", "kind": "extract", "status": 401, "times": 99})
    assert await run_graph(worker, upload) is None
    state = await uploads.state(upload, "graph")
    assert (state.state, state.chunks_done) == ("partial", 3)
    assert set((await chunk_failures(uploads, upload)).values()) == {"model_rejected"}
    assert "401" in str(state.error_detail)


async def test_the_time_limit_of_extraction_holds_for_all_attempts_together(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, stub_chat: str, stub_llm: StubServer
) -> None:
    workspace_id = await tenancy.add_workspace(
        engines=GRAPH, chat=stub_chat, settings=SMALL_CHUNKS | {"extract_timeout_seconds": 600}
    )
    upload = await extracted_text(worker, uploads, workspace_id)
    stub_llm.set_faults({"match": "Marker2 ", "kind": "extract", "status": 500, "times": 99})
    assert await run_graph(worker, upload)
    spent = (await uploads.state(upload, "graph")).stage_ms["extract"] / 1000
    assert spent > 0
    await uploads.change_settings(workspace_id, SMALL_CHUNKS | {"extract_timeout_seconds": spent})
    calls = stub_llm.stats()["calls"]["extract"]
    assert await run_graph(worker, upload) is None
    assert (await uploads.state(upload, "graph")).state == "partial"
    assert stub_llm.stats()["calls"]["extract"] == calls


async def test_a_merge_that_takes_too_long_is_untrusted_purged_and_can_be_retried_for_nothing(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, urls: DatabaseUrls, stub_chat: str, stub_llm: StubServer
) -> None:
    workspace_id = await tenancy.add_workspace(
        engines=GRAPH, chat=stub_chat, settings=SMALL_CHUNKS | {"merge_timeout_seconds": 0.05}
    )
    upload = await extracted_text(worker, uploads, workspace_id)
    assert await run_graph(worker, upload) is None
    state = await uploads.state(upload, "graph")
    assert (state.state, state.error_code) == ("failed", "merge_timeout")
    assert state.cleanliness == "purging"
    assert not await retry(uploads, upload)
    purge = PurgeGraphVersion(upload.tenant_id, upload.workspace_id, upload.version_id)
    assert await attempt(worker.jobs, purge, runs=1) is None
    assert (await uploads.state(upload, "graph")).cleanliness == "clean"
    assert await uploads.engine_rows(workspace_id, urls.engine) == {}
    await uploads.change_settings(workspace_id, SMALL_CHUNKS)
    assert await retry(uploads, upload)
    await run_graph(worker, upload)
    assert (await uploads.state(upload, "graph")).state == "ready"
    assert stub_llm.stats()["calls"]["extract"] == CHUNKS


async def test_a_version_whose_workspace_is_busy_waits_without_a_slot(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId
) -> None:
    upload = await extracted_text(worker, uploads, stub_workspace)
    reference = (await worker.container.workspaces.open(upload.tenant_id, stub_workspace)).ref
    async with WorkspaceLeases(worker.container.database, 60).hold(reference, wait_seconds=0):
        assert await run_graph(worker, upload) is None
        state = await uploads.state(upload, "graph")
        assert (state.state, state.stage, state.attempts) == ("queued", "waiting_for_workspace", 0)
        waiting = await worker.container.redis.llen("graph")
    assert await worker.container.redis.llen("graph") == waiting + 1
    await run_graph(worker, upload)
    assert (await uploads.state(upload, "graph")).state == "ready"
