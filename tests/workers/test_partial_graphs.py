"""Graphs that lack chunks: seen only where asked for, every piece marked, or kept out until they are whole."""

from app.bootstrap import Worker
from app.db.base import WorkspaceId
from app.db.provision import DatabaseUrls
from app.jobs import PurgeGraphVersion
from app.retrieval.contract import SearchRequest, SearchResult
from tests.factories import Tenancy
from tests.fakes.stub_process import StubServer
from tests.workers.reports import CHUNKS, GRAPH, SMALL_CHUNKS, chunk_failures, extracted_text, retry, run_graph
from tests.workers.uploads import Uploads
from workers.task import attempt

NONSENSE = {"match": "Marker3 ", "kind": "extract", "body": "As you wish: nothing of note here.", "times": 9}
KEEP_OUT = SMALL_CHUNKS | {"partial_graphs": "keep_out"}


async def ask(worker: Worker, uploads: Uploads, workspace_id: WorkspaceId, *, include_partial: bool) -> SearchResult:
    workspace = await worker.container.workspaces.open(uploads.tenant_id, workspace_id)
    request = SearchRequest("Whom did Captain Marker1 meet?", "mix", include_partial=include_partial)
    return await worker.container.graph.search.search(workspace, request)


def marks(result: SearchResult) -> list[bool]:
    """Which pieces of evidence stand on a graph that lacks chunks."""
    return [
        *(passage.is_partial for passage in result.passages),
        *(entity.is_partial for entity in result.entities),
        *(relation.is_partial for relation in result.relations),
    ]


async def test_a_partial_graph_is_seen_where_asked_for_with_every_piece_marked(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId, stub_llm: StubServer
) -> None:
    whole = await extracted_text(worker, uploads, stub_workspace)
    await run_graph(worker, whole)
    upload = await extracted_text(worker, uploads, stub_workspace)
    stub_llm.set_faults(NONSENSE)
    await run_graph(worker, upload)
    assert (await uploads.state(upload, "graph")).state == "partial"

    hidden = await ask(worker, uploads, stub_workspace, include_partial=False)
    assert True not in marks(hidden)
    assert hidden.entities
    assert {passage.version_id for passage in hidden.passages} == {whole.version_id}

    shown = await ask(worker, uploads, stub_workspace, include_partial=True)
    for passage in shown.passages:
        assert passage.is_partial == (passage.version_id == upload.version_id)
    for entity in shown.entities:
        assert entity.is_partial == (upload.document_id in entity.document_ids)
    for relation in shown.relations:
        assert relation.is_partial == (upload.document_id in relation.document_ids)
    assert {piece.is_partial for piece in shown.entities} == {True, False}

    stub_llm.reset()
    assert await retry(uploads, upload)
    await run_graph(worker, upload)
    again = await ask(worker, uploads, stub_workspace, include_partial=True)
    assert True not in marks(again)
    assert stub_llm.stats()["calls"]["extract"] == 1


async def test_a_workspace_may_keep_graphs_out_until_they_are_whole(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, stub_chat: str, stub_llm: StubServer, urls: DatabaseUrls
) -> None:
    workspace_id = await tenancy.add_workspace(engines=GRAPH, chat=stub_chat, settings=KEEP_OUT)
    upload = await extracted_text(worker, uploads, workspace_id)
    stub_llm.set_faults(NONSENSE)
    assert await run_graph(worker, upload) is None
    state = await uploads.state(upload, "graph")
    assert (state.state, state.error_code, state.cleanliness) == ("partial", "partial_kept_out", "clean")
    assert (state.chunks_done, state.chunks_total) == (CHUNKS - 1, CHUNKS)
    assert await chunk_failures(uploads, upload) == {3: "model_nonsense"}
    assert await uploads.engine_rows(workspace_id, urls.engine) == {}
    assert await uploads.count("live_versions", upload) == 1
    stub_llm.reset()
    assert await retry(uploads, upload)
    await run_graph(worker, upload)
    assert (await uploads.state(upload, "graph")).state == "ready"
    assert stub_llm.stats()["calls"]["extract"] == 1


async def test_a_partial_graph_that_is_no_longer_wanted_is_taken_out(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId, stub_llm: StubServer, urls: DatabaseUrls
) -> None:
    upload = await extracted_text(worker, uploads, stub_workspace)
    stub_llm.set_faults(NONSENSE)
    await run_graph(worker, upload)
    assert await uploads.engine_rows(stub_workspace, urls.engine)
    await uploads.change_settings(stub_workspace, KEEP_OUT)
    assert await retry(uploads, upload)
    await run_graph(worker, upload)
    state = await uploads.state(upload, "graph")
    assert (state.state, state.cleanliness) == ("partial", "purging")
    assert await uploads.count("live_versions", upload) == 1
    purge = PurgeGraphVersion(upload.tenant_id, upload.workspace_id, upload.version_id)
    assert await attempt(worker.jobs, purge, runs=1) is None
    assert (await uploads.state(upload, "graph")).cleanliness == "clean"
    assert await uploads.engine_rows(stub_workspace, urls.engine) == {}
