"""Messages that come twice, too late, or out of order have no second effect; nothing of a deleted document comes back."""

import asyncio
import secrets

import asyncpg
import pytest
from pydantic import SecretStr
from sqlalchemy import text

from app.bootstrap import Worker
from app.db.base import WorkspaceId
from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.domain.models.service import ModelProfiles, NewProfile
from app.settings import Settings
from tests.factories import Tenancy
from tests.fakes.stub_process import StubServer
from tests.workers.reports import CHUNKS, GRAPH, SMALL_CHUNKS, extracted_text, report, run_graph
from tests.workers.uploads import Uploads
from workers.task import attempt

CORPUS = "SELECT version FROM corpus_versions WHERE workspace_id = :id"


async def test_jobs_that_come_three_times_at_once_and_again_are_done_once(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId, stub_llm: StubServer, urls: DatabaseUrls
) -> None:
    upload = await uploads.add(stub_workspace, report(), "report.md", engines=GRAPH)
    # The graph's message overtakes the text's.
    for job in (upload.index_graph, upload.process, upload.index_graph):
        await asyncio.gather(*(attempt(worker.jobs, job, runs=1) for _ in range(3)))
    assert [(await uploads.state(upload, engine)).state for engine in GRAPH] == ["ready", "ready"]
    assert [(await uploads.state(upload, engine)).attempts for engine in GRAPH] == [1, 1]
    corpus, rows = (
        await uploads.scalar(CORPUS, id=stub_workspace),
        await uploads.engine_rows(stub_workspace, urls.engine),
    )
    for job in (upload.index_graph, upload.process):
        await attempt(worker.jobs, job, runs=1)
    assert await uploads.scalar(CORPUS, id=stub_workspace) == corpus
    assert await uploads.engine_rows(stub_workspace, urls.engine) == rows
    assert stub_llm.stats()["calls"]["extract"] == CHUNKS


async def test_a_document_that_is_uploaded_again_gets_nothing_of_a_poisoned_cache(
    worker: Worker, uploads: Uploads, stub_workspace: WorkspaceId, stub_llm: StubServer, urls: DatabaseUrls
) -> None:
    """C23."""
    content = report()
    first = await uploads.add(stub_workspace, content, "report.md", engines=GRAPH)
    await attempt(worker.jobs, first.process, runs=1)
    await run_graph(worker, first)
    connection = await asyncpg.connect(urls.owner)
    try:
        poisoned = await connection.execute(
            "UPDATE lightrag_llm_cache SET return_value = 'entity<|#|>Poison<|#|>concept<|#|>Bad.\n<|COMPLETE|>'"
            " WHERE workspace = $1",
            f"w_{stub_workspace.hex}",
        )
    finally:
        await connection.close()
    assert poisoned == f"UPDATE {CHUNKS}"
    await uploads.begin_deletion(first)
    await attempt(worker.jobs, first.purge, runs=1)
    assert await uploads.engine_text(stub_workspace, urls.engine) == ""
    again = await uploads.add(stub_workspace, content, "report.md", engines=GRAPH)
    await attempt(worker.jobs, again.process, runs=1)
    await run_graph(worker, again)
    assert (await uploads.state(again, "graph")).state == "ready"
    assert stub_llm.stats()["calls"]["extract"] == 2 * CHUNKS
    found = await uploads.engine_text(stub_workspace, urls.engine)
    assert "Poison" not in found
    assert "Marker5" in found


async def test_a_workspace_may_shorten_the_time_for_reading_a_file(
    worker: Worker, tenancy: Tenancy, uploads: Uploads
) -> None:
    workspace_id = await tenancy.add_workspace(settings={"parse_timeout_seconds": 0.01})
    upload = await uploads.add(workspace_id, "Ada met Ben. " * 50_000, "long.txt")
    assert await attempt(worker.jobs, upload.process, runs=1) is None
    state = await uploads.state(upload)
    assert (state.state, state.error_code) == ("failed", "parse_timeout")
    assert "0.01 seconds" in str(state.error_detail)


@pytest.fixture
async def stub_vectors(stub_llm: StubServer, owner_database: Database, settings: Settings) -> str:
    name = f"vectors-{secrets.token_hex(4)}"
    profile = NewProfile(
        name=name, role="embedding", provider="openai", model="stub", base_url=stub_llm.base_url,
        api_key=SecretStr("test"), dimension=384, max_retries=0, timeout_seconds=20,
    )  # fmt: skip
    await ModelProfiles(owner_database, settings.secret_key).register(profile)
    return name


async def test_a_model_that_gives_vectors_of_another_length_is_refused_with_both_numbers(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, stub_vectors: str, stub_chat: str, stub_llm: StubServer
) -> None:
    """C41."""
    filled = await tenancy.add_workspace(engines=GRAPH, embedding=stub_vectors, chat=stub_chat, settings=SMALL_CHUNKS)
    await run_graph(worker, await extracted_text(worker, uploads, filled))
    stub_llm.set_faults({"kind": "embed", "dimension": 300, "times": 99})
    refused = await uploads.add(filled, "Ada met Ben in Lindau.", engines=GRAPH)
    assert await attempt(worker.jobs, refused.process, runs=1) is None
    state = await uploads.state(refused)
    assert (state.state, state.error_code) == ("failed", "embedding_mismatch")
    assert "300" in str(state.error_detail)
    assert "384" in str(state.error_detail)
    other = await uploads.add(await tenancy.add_workspace(), "Ada met Ben in Lindau.")
    await attempt(worker.jobs, other.process, runs=1)
    assert (await uploads.state(other)).state == "ready"


async def test_a_profile_that_was_changed_to_another_dimension_is_refused_with_both_numbers(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, stub_vectors: str, stub_chat: str, owner_database: Database
) -> None:
    """C41, by an operator's hand in the database."""
    async with owner_database.system() as session:
        await session.execute(
            text("UPDATE model_profiles SET dimension = 300 WHERE name = :name"), {"name": stub_vectors}
        )
    workspace_id = await tenancy.add_workspace(engines=GRAPH, embedding=stub_vectors, chat=stub_chat)
    upload = await uploads.add(workspace_id, "Ada met Ben in Lindau.", engines=GRAPH)
    assert await attempt(worker.jobs, upload.process, runs=1) is None
    state = await uploads.state(upload)
    assert (state.state, state.error_code) == ("failed", "dimension_mismatch")
    assert "300" in str(state.error_detail)
    assert "384" in str(state.error_detail)
