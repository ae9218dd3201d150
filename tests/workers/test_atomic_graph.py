"""A graph, its version's state, the live pointer and the corpus version go in together or not at all."""

from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from app.bootstrap import Worker
from app.db.base import WorkspaceId
from app.db.provision import DatabaseUrls
from app.domain.ingestion.states import IndexStates
from tests.factories import Tenancy
from tests.retrieval.storage.faults import Broken, before_statement
from tests.workers.uploads import Upload, Uploads
from workers.task import attempt

GRAPH = ("lazy", "graph")
FIRST = "Captain Ada Moreau left Port Lindau for the island of Skerry with the ship Albatross."
SECOND = "Captain Ada Moreau stayed in Port Lindau and sold the ship Albatross to Greta Holm."
CORPUS_VERSION = "SELECT version FROM corpus_versions WHERE workspace_id = :id"


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=GRAPH)


async def due(worker: Worker, uploads: Uploads, workspace_id: WorkspaceId, content: str = FIRST) -> Upload:
    """An upload whose graph is due."""
    upload = await uploads.add(workspace_id, content, engines=GRAPH)
    await attempt(worker.jobs, upload.process, runs=1)
    return upload


async def entities(urls: DatabaseUrls, workspace_id: WorkspaceId) -> set[str]:
    connection = await asyncpg.connect(urls.owner)
    try:
        query = "SELECT id FROM lightrag_graph_nodes WHERE workspace = $1"
        return {row["id"] for row in await connection.fetch(query, f"w_{workspace_id.hex}")}
    finally:
        await connection.close()


async def test_claim_that_is_lost_at_the_last_moment_writes_nothing(
    worker: Worker,
    uploads: Uploads,
    urls: DatabaseUrls,
    workspace_id: WorkspaceId,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upload = await due(worker, uploads, workspace_id)
    corpus = await uploads.scalar(CORPUS_VERSION, id=workspace_id)

    async def cancel(statement: int) -> None:
        if statement == 1:
            async with uploads.database.tenant(uploads.tenant_id) as session:
                assert await IndexStates(session).cancel(upload.version_id, "graph")

    before_statement(monkeypatch, cancel)
    assert await attempt(worker.jobs, upload.index_graph, runs=1) is None
    assert await uploads.engine_rows(workspace_id, urls.engine) == {}
    assert (await uploads.state(upload, "graph")).state == "cancelled"
    assert await uploads.scalar(CORPUS_VERSION, id=workspace_id) == corpus
    assert await uploads.count("mentions", upload) == 0
    assert await uploads.count("live_versions", upload) == 1


async def test_graph_that_breaks_off_at_its_last_statement_is_neither_there_nor_trusted(
    worker: Worker,
    uploads: Uploads,
    urls: DatabaseUrls,
    workspace_id: WorkspaceId,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upload = await due(worker, uploads, workspace_id)
    counted = before_statement(monkeypatch, _break_at(-1))
    other = await due(worker, uploads, workspace_id, SECOND)
    await attempt(worker.jobs, other.index_graph, runs=1)
    last = len(counted) - 1
    monkeypatch.undo()
    rows = await uploads.engine_rows(workspace_id, urls.engine)

    before_statement(monkeypatch, _break_at(last))
    assert await attempt(worker.jobs, upload.index_graph, runs=1) is not None
    assert await uploads.engine_rows(workspace_id, urls.engine) == rows
    assert (await uploads.state(upload, "graph")).state == "queued"
    assert await uploads.count("live_versions", upload) == 1
    monkeypatch.undo()

    await attempt(worker.jobs, upload.index_graph, runs=1)
    assert (await uploads.state(upload, "graph")).state == "ready"
    assert await uploads.count("mentions", upload) > 0


async def test_replacement_takes_the_old_version_out_in_the_same_write(
    worker: Worker, uploads: Uploads, urls: DatabaseUrls, workspace_id: WorkspaceId
) -> None:
    old = await due(worker, uploads, workspace_id)
    await attempt(worker.jobs, old.index_graph, runs=1)
    new = await uploads.replace(old, SECOND)
    await attempt(worker.jobs, new.process, runs=1)
    await attempt(worker.jobs, new.index_graph, runs=1)
    assert (await uploads.state(new, "graph")).state == "ready"
    names = await entities(urls, workspace_id)
    assert "Greta Holm" in names
    assert "Skerry" not in names
    assert await uploads.count("mentions", old) == 0
    live = "SELECT version_id FROM live_versions WHERE document_id = :document AND engine = 'graph'"
    assert await uploads.scalar(live, document=new.document_id) == new.version_id


def _break_at(number: int) -> Callable[[int], Awaitable[None]]:
    async def fault(statement: int) -> None:
        if statement == number:
            raise Broken

    return fault
