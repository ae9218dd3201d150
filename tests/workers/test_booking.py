"""What a document used is in the ledger once it is ready, whatever dies after that, and never twice."""

from app.bootstrap import Worker
from app.db.base import WorkspaceId
from app.domain.ingestion.attempts import Begun, book_usage
from app.domain.ingestion.repository import IngestionRepository
from app.domain.ingestion.states import IndexStates
from app.domain.workspaces.repository import WorkspaceRepository
from app.providers.contract import ModelProfile, Purpose
from app.retrieval.contract import Engine
from tests.factories import Tenancy
from tests.fakes.stub_process import StubServer
from tests.workers.reports import CHUNKS, GRAPH, SMALL_CHUNKS, extracted_text, run_graph
from tests.workers.uploads import Upload, Uploads
from workers.task import attempt

# By the transactions that wrote the rows.
BOOKED_LATER = """
SELECT count(*) FROM usage_events u
 WHERE u.version_id = :version
   AND CAST(CAST(u.xmin AS text) AS bigint) > (SELECT max(CAST(CAST(t.xmin AS text) AS bigint)) FROM index_transitions t
                                                WHERE t.version_id = :version AND t.to_state = 'ready')"""
BOOKED = "SELECT coalesce(sum(calls), 0) FROM usage_events WHERE version_id = :version AND purpose = 'extract'"


async def begin(uploads: Uploads, upload: Upload, engine: Engine = "lazy") -> Begun:
    async with uploads.database.tenant(uploads.tenant_id) as session:
        claim = await IndexStates(session).claim(upload.version_id, engine, "me", lease_seconds=30, max_attempts=5)
        facts = await IngestionRepository(session).find_version(upload.version_id)
        record = await WorkspaceRepository(session).get(upload.workspace_id)
    return Begun(claim, facts, record)  # type: ignore[arg-type]


async def profile(uploads: Uploads) -> ModelProfile:
    found = await uploads.scalar("SELECT id FROM model_profiles WHERE role = 'chat' LIMIT 1")
    return ModelProfile(found, "any", "chat", "offline", "rules")


async def test_all_that_a_ready_document_used_went_in_with_it_or_before(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId, stub_llm: StubServer
) -> None:
    upload = await extracted_text(worker, uploads, stub_workspace)
    await run_graph(worker, upload)
    state = await uploads.state(upload, "graph")
    assert (state.state, state.model_calls) == ("ready", CHUNKS)
    assert await uploads.scalar(BOOKED, version=upload.version_id) == stub_llm.stats()["calls"]["extract"] == CHUNKS
    assert await uploads.scalar(BOOKED_LATER, version=upload.version_id) == 0


async def test_what_is_booked_again_after_a_lost_answer_counts_once(
    uploads: Uploads, stub_workspace: WorkspaceId
) -> None:
    upload = await uploads.add(stub_workspace, "Some text.")
    begun = await begin(uploads, upload)
    begun.meter.add(await profile(uploads), Purpose.EXTRACT, tokens_in=100, tokens_out=10, is_estimated=False)
    async with uploads.database.tenant(uploads.tenant_id) as session:
        await book_usage(session, begun)
        sent = dict(begun.unconfirmed)
    assert not begun.unconfirmed
    # As it is where the connection was lost at the commit; meanwhile the model was asked once more.
    begun.unconfirmed.update(sent)
    begun.meter.add(await profile(uploads), Purpose.EXTRACT, tokens_in=50, tokens_out=5, is_estimated=False)
    async with uploads.database.tenant(uploads.tenant_id) as session:
        await book_usage(session, begun)
    assert await uploads.scalar(BOOKED, version=upload.version_id) == 2
    state = await uploads.state(upload)
    assert (state.model_calls, state.tokens_in, state.tokens_out) == (2, 150, 15)


async def test_what_a_rolled_back_transaction_booked_is_booked_by_the_next(
    uploads: Uploads, stub_workspace: WorkspaceId
) -> None:
    upload = await uploads.add(stub_workspace, "Some text.")
    begun = await begin(uploads, upload)
    begun.meter.add(await profile(uploads), Purpose.EXTRACT, tokens_in=100, tokens_out=10, is_estimated=False)
    try:
        async with uploads.database.tenant(uploads.tenant_id) as session:
            await book_usage(session, begun)
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    async with uploads.database.tenant(uploads.tenant_id) as session:
        await book_usage(session, begun)
    assert await uploads.scalar(BOOKED, version=upload.version_id) == 1


async def test_what_a_removal_asks_a_model_for_is_booked(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, stub_chat: str, stub_llm: StubServer
) -> None:
    """What is left of an entity's text is summed up anew."""
    settings = SMALL_CHUNKS | {"summary_after_fragments": 2}
    workspace_id = await tenancy.add_workspace(engines=GRAPH, chat=stub_chat, settings=settings)
    first, second = [await extracted_text(worker, uploads, workspace_id) for _ in range(2)]
    for upload in (first, second):
        await run_graph(worker, upload)
    before = stub_llm.stats()["calls"]["summary"]
    await uploads.begin_deletion(first)
    await attempt(worker.jobs, first.purge, runs=1)
    assert stub_llm.stats()["calls"]["summary"] > before
    booked = "SELECT sum(calls) FROM usage_events WHERE workspace_id = :workspace AND purpose = 'summary'"
    assert await uploads.scalar(booked, workspace=workspace_id) == stub_llm.stats()["calls"]["summary"]
