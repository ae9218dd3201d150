"""What is deleted leaves no row, no vector and no file, whatever state it was in, and nothing else goes with it."""

import asyncio
from collections.abc import Sequence

import pytest
from sqlalchemy import text

from app.blobs.store import BlobMissing
from app.bootstrap import Worker
from app.db.base import WorkspaceId
from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.domain.entities.changes import Requested
from app.domain.ingestion.leases import WorkspaceLeases
from app.jobs import PurgeGraphVersion, PurgeWorkspace
from app.retrieval.entity_contract import MergeRequest
from tests.factories import Tenancy
from tests.workers.uploads import Upload, Uploads
from workers.task import attempt

GRAPH = ("lazy", "graph")
OURS = ("documents", "versions", "blobs", "passages", "chunks", "index_states", "live_versions", "mentions")


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(engines=GRAPH)


async def indexed(worker: Worker, uploads: Uploads, workspace_id: WorkspaceId, content: str) -> Upload:
    upload = await uploads.add(workspace_id, content, engines=GRAPH)
    await attempt(worker.jobs, upload.process, runs=1)
    await attempt(worker.jobs, upload.index_graph, runs=1)
    assert (await uploads.state(upload, "graph")).state == "ready"
    return upload


async def rows(uploads: Uploads, workspace_id: WorkspaceId) -> dict[str, int]:
    """Rows of ours in the workspace, by table."""
    found: dict[str, int] = {}
    async with uploads.database.tenant(uploads.tenant_id) as session:
        for table in OURS:
            count = await session.scalar(
                text(f"SELECT count(*) FROM {table} WHERE workspace_id = :id"),
                {"id": workspace_id},
            )
            if count:
                found[table] = count
        for table in ("lazy_versions", "lazy_passages", "concept_postings", "term_postings"):
            count = await session.scalar(
                text(f"SELECT count(*) FROM {table} WHERE workspace = (SELECT number FROM workspaces WHERE id = :id)"),
                {"id": workspace_id},
            )
            if count:
                found[table] = count
    return found


async def test_a_deleted_document_leaves_nothing(
    worker: Worker, uploads: Uploads, urls: DatabaseUrls, workspace_id: WorkspaceId
) -> None:
    upload = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau left Port Lindau.")
    key = await uploads.scalar("SELECT key FROM blobs WHERE workspace_id = :id", id=workspace_id)
    assert await uploads.engine_rows(workspace_id, urls.engine)
    await uploads.begin_deletion(upload)
    assert await attempt(worker.jobs, upload.purge, runs=1) is None
    assert await rows(uploads, workspace_id) == {}
    assert await uploads.engine_text(workspace_id, urls.engine) == ""
    with pytest.raises(BlobMissing):
        _ = [chunk async for chunk in uploads.blobs.stream(key)]
    assert await attempt(worker.jobs, upload.purge, runs=1) is None


async def test_the_other_documents_of_the_workspace_stay(
    worker: Worker, uploads: Uploads, urls: DatabaseUrls, workspace_id: WorkspaceId
) -> None:
    gone = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau once robbed the Tonnberg bank.")
    stays = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau left Port Lindau.")
    await uploads.begin_deletion(gone)
    await attempt(worker.jobs, gone.purge, runs=1)
    found = await uploads.engine_text(workspace_id, urls.engine)
    assert "Tonnberg" not in found
    assert "Lindau" in found
    assert await uploads.count("live_versions", stays) == 2


async def test_a_document_is_deleted_while_it_is_worked_on(
    worker: Worker, uploads: Uploads, workspace_id: WorkspaceId
) -> None:
    content = "\n\n".join(f"# Part {n}\n\nAda Moreau met person {n} in Lindau." for n in range(400))
    upload = await uploads.add(workspace_id, content, "a.md", engines=GRAPH)
    work = asyncio.create_task(attempt(worker.jobs, upload.process, runs=1))
    await uploads.enters(upload, "embedding")
    await uploads.begin_deletion(upload)
    assert await attempt(worker.jobs, upload.purge, runs=1) is None
    assert await work is None
    assert await rows(uploads, workspace_id) == {}


async def test_a_failed_document_is_deleted_while_another_holds_the_workspace(
    worker: Worker, uploads: Uploads, workspace_id: WorkspaceId
) -> None:
    """C22."""
    failed = await uploads.add(workspace_id, "", engines=GRAPH)
    await attempt(worker.jobs, failed.process, runs=1)
    reference = (await worker.container.workspaces.open(failed.tenant_id, workspace_id)).ref
    await uploads.begin_deletion(failed)
    async with WorkspaceLeases(uploads.database, 60).hold(reference, wait_seconds=0):
        assert await attempt(worker.jobs, failed.purge, runs=1) is None
    assert await rows(uploads, workspace_id) == {}


async def test_a_new_version_replaces_the_old_one_when_it_is_ready(
    worker: Worker, uploads: Uploads, urls: DatabaseUrls, workspace_id: WorkspaceId
) -> None:
    old = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau commands the Tonnberg.")
    new = await uploads.replace(old, "Captain Ada Moreau commands the Seeadler.")
    await attempt(worker.jobs, new.process, runs=1)
    # The graph still answers from the old version, so all of it is still there.
    purge = PurgeGraphVersion(old.tenant_id, old.workspace_id, old.version_id)
    await attempt(worker.jobs, purge, runs=1)
    assert (await uploads.count("live_versions", old), await uploads.count("live_versions", new)) == (1, 1)
    assert await uploads.count("passages", old) == 1
    await attempt(worker.jobs, new.index_graph, runs=1)
    assert (await uploads.count("live_versions", old), await uploads.count("live_versions", new)) == (0, 2)
    await attempt(worker.jobs, purge, runs=1)
    found = await uploads.engine_text(workspace_id, urls.engine)
    assert "Tonnberg" not in found
    assert "Seeadler" in found
    assert await uploads.count("passages", old) == 0
    found_rows = await rows(uploads, workspace_id)
    assert (found_rows["versions"], found_rows["blobs"]) == (1, 1)


@pytest.mark.parametrize("graph_store", ["table", pytest.param("age", marks=pytest.mark.age)])
async def test_a_deleted_workspace_leaves_nothing(
    worker: Worker, tenancy: Tenancy, uploads: Uploads, urls: DatabaseUrls, graph_store: str
) -> None:
    workspace_id = await tenancy.add_workspace(engines=GRAPH, graph_store=graph_store)
    other = await tenancy.add_workspace(engines=GRAPH, graph_store=graph_store)
    await indexed(worker, uploads, workspace_id, "Captain Ada Moreau left Port Lindau.")
    kept = await indexed(worker, uploads, other, "Captain Ada Moreau left Port Lindau.")
    await uploads.scalar("UPDATE workspaces SET status = 'deleting' WHERE id = :id RETURNING 1", id=workspace_id)
    assert await attempt(worker.jobs, PurgeWorkspace(uploads.tenant_id, workspace_id), runs=1) is None
    assert await rows(uploads, workspace_id) == {}
    assert await uploads.engine_text(workspace_id, urls.engine) == ""
    assert await uploads.scalar("SELECT count(*) FROM workspaces WHERE id = :id", id=workspace_id) == 0
    is_gone = "SELECT to_regnamespace(graph_name(:id)) IS NULL AND to_regrole(graph_name(:id)) IS NULL"
    assert await uploads.scalar(is_gone, id=workspace_id)
    assert await uploads.scalar(is_gone, id=other) == (graph_store == "table")
    assert "Moreau" in await uploads.engine_text(other, urls.engine)
    assert await uploads.count("live_versions", kept) == 2


async def test_a_removal_that_goes_on_is_not_stale(
    worker: Worker, uploads: Uploads, workspace_id: WorkspaceId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the sweeper would send it again and again, until every thread of the workers did the same removal."""
    for name in ("Ada", "Ben"):
        await indexed(worker, uploads, workspace_id, f"Captain {name} Moreau left Port Lindau.")
    age = "UPDATE workspaces SET status = 'deleting', updated_at = now() - interval '1 hour' WHERE id = :id RETURNING 1"
    is_fresh = "SELECT updated_at > now() - interval '30 minutes' FROM workspaces WHERE id = :id"
    seen: list[bool] = []
    delete = worker.container.blobs.delete

    async def looked_at(keys: Sequence[str]) -> None:
        seen.append(await uploads.scalar(is_fresh, id=workspace_id))
        await uploads.scalar(age, id=workspace_id)
        await delete(keys)

    monkeypatch.setattr(worker.container.blobs, "delete", looked_at)
    await uploads.scalar(age, id=workspace_id)
    assert await attempt(worker.jobs, PurgeWorkspace(uploads.tenant_id, workspace_id), runs=1) is None
    assert seen == [True, True]


async def test_a_document_is_not_gone_before_nothing_is_left(
    worker: Worker, uploads: Uploads, owner_database: Database, workspace_id: WorkspaceId
) -> None:
    """A table that the removal knows nothing of is looked at as well."""
    upload = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau left Port Lindau.")
    async with owner_database.tenant(uploads.tenant_id) as session:
        await session.execute(text("CREATE TABLE forgotten_notes (tenant_id uuid, version_id uuid)"))
        await session.execute(text("GRANT SELECT ON forgotten_notes TO trellis_app"))
        await session.execute(
            text("INSERT INTO forgotten_notes VALUES (:tenant, :version)"),
            {"tenant": uploads.tenant_id, "version": upload.version_id},
        )
    try:
        await uploads.begin_deletion(upload)
        assert await attempt(worker.jobs, upload.purge, runs=1) is not None  # to be repeated
        assert await uploads.scalar("SELECT count(*) FROM documents WHERE id = :id", id=upload.document_id) == 1
    finally:
        async with owner_database.system() as session:
            await session.execute(text("DROP TABLE forgotten_notes"))
    assert await attempt(worker.jobs, upload.purge, runs=2) is None
    assert await rows(uploads, workspace_id) == {}


async def test_what_was_merged_goes_with_all_its_documents(
    worker: Worker, uploads: Uploads, urls: DatabaseUrls, workspace_id: WorkspaceId
) -> None:
    """F17: an entity that others were merged into held on to the text of documents that were gone."""
    first = await indexed(worker, uploads, workspace_id, "Captain Ada Moreau left Port Lindau.")
    second = await indexed(worker, uploads, workspace_id, "Captain Moreau commands the Tonnberg.")
    container = worker.container
    entities = container.entities()
    names = [
        entity.name
        for entity in await entities.list(uploads.tenant_id, workspace_id, prefix=None, after=None, limit=50)
    ]
    sources = [name for name in names if "Moreau" in name or "Captain" in name]
    assert len(names) > len(sources) > 0, names
    await container.entity_changes().merge(
        uploads.tenant_id, workspace_id, MergeRequest(tuple(sources), "The Commander"), Requested("test")
    )
    for upload in (first, second):
        await uploads.begin_deletion(upload)
        assert await attempt(worker.jobs, upload.purge, runs=1) is None
    assert await uploads.engine_rows(workspace_id, urls.engine) == {}
    assert await rows(uploads, workspace_id) == {}
