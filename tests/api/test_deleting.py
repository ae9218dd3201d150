"""A document that is deleted, in whatever state, leaves no trace: every table is read with SQL of the test's own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest
from sqlalchemy import make_url

from app.bootstrap import Container, Worker
from app.db.session import Database
from app.jobs import IndexGraph, Job, ProcessVersion, PurgeDocument
from app.settings import Settings
from tests.api.documents import until, upload_text
from tests.api.test_duplicates import stored_files
from tests.cluster import Cluster
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer
from workers.task import attempt

pytestmark = pytest.mark.timeout(120)

# Words that nothing else in the database has: of the text, its names, and what was said of it.
TRACES = ("zanzorb", "querlint", "voxdrum", "plimquat", "grusel")
TEXT = "Captain Zanzorb of the ship Querlint met Governor Voxdrum in Port Zanzorb. The Querlint carries voxdrum oil."
SETTINGS = {"chunk_strategy": "sentence", "chunk_tokens": 200, "summary_after_fragments": 2}
GONE = {"kind": "extract", "delay_ms": 50_000, "times": 100, "name": "slow"}

TABLES = """
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
   AND NOT c.relispartition ORDER BY 1"""


@dataclass
class Scene:
    """One document of one workspace, and all that can be done with it."""

    client: httpx.AsyncClient
    worker: Worker
    tenancy: Tenancy
    stub: StubServer
    document: Any

    def job(self, kind: type[ProcessVersion] | type[IndexGraph]) -> Job:
        ids = UUID(self.document["workspace_id"]), UUID(self.document["version"]["id"])
        return kind(self.tenancy.tenant_id, *ids)

    async def run(self, *kinds: type[ProcessVersion] | type[IndexGraph]) -> None:
        for kind in kinds:
            await attempt(self.worker.jobs, self.job(kind), runs=1)

    async def post(self, action: str) -> Any:
        answer = await self.client.post(f"{self.document['links']['self']}/{action}")
        assert answer.is_success, answer.text
        return answer.json()

    async def read(self) -> Any:
        return (await self.client.get(self.document["links"]["self"])).json()

    async def reaches(self, engine: str, stage: str) -> None:
        async def is_there() -> Any:
            return (await self.read())["engines"][engine]["stage"] == stage

        await until(is_there)

    async def purge(self) -> None:
        ids = UUID(self.document["workspace_id"]), UUID(self.document["id"])
        await attempt(self.worker.jobs, PurgeDocument(self.tenancy.tenant_id, *ids), runs=1)


Make = Callable[[Scene], Awaitable["asyncio.Task[Any] | None"]]


async def queued(scene: Scene) -> None:
    """Nobody has looked at it."""


async def waiting_for_the_graph(scene: Scene) -> None:
    await scene.run(ProcessVersion)


async def extracting(scene: Scene) -> "asyncio.Task[Any]":
    await scene.run(ProcessVersion)
    scene.stub.set_faults(GONE)
    work = asyncio.create_task(scene.run(IndexGraph))
    await scene.reaches("graph", "extracting")
    return work


async def merging(scene: Scene) -> "asyncio.Task[Any]":
    await scene.run(ProcessVersion)
    scene.stub.set_faults(GONE | {"kind": "summary"})
    work = asyncio.create_task(scene.run(IndexGraph))

    async def asks() -> Any:
        return (await asyncio.to_thread(scene.stub.stats))["in_flight"].get("summary")

    await until(asks)
    return work


async def ready(scene: Scene) -> None:
    await scene.run(ProcessVersion, IndexGraph)
    assert (await scene.read())["status"] == "ready"


async def partial(scene: Scene) -> None:
    await scene.run(ProcessVersion)
    scene.stub.set_faults({"match": "Plimquat3", "kind": "extract", "body": "Nothing of note.", "times": 9})
    await scene.run(IndexGraph)
    assert (await scene.read())["engines"]["graph"]["state"] == "partial"


async def failed(scene: Scene) -> None:
    await scene.run(ProcessVersion)
    scene.stub.set_faults({"kind": "extract", "body": "Nothing of note.", "times": 99})
    await scene.run(IndexGraph)
    assert (await scene.read())["engines"]["graph"]["state"] == "failed"


async def cancelled(scene: Scene) -> None:
    await waiting_for_the_graph(scene)
    assert (await scene.post("cancel"))["status"] == "cancelled"


async def replaced(scene: Scene) -> None:
    """The old content answers, the new one is indexed in part, and neither has been removed."""
    await ready(scene)
    answer = await scene.client.put(scene.document["links"]["content"], json={"text": f"{TEXT} It is grusel now."})
    scene.document = answer.json()
    await scene.run(ProcessVersion)


@pytest.fixture
async def admin(cluster: Cluster, settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    """Past all policies, on the database of this process."""
    name = make_url(settings.database_url.get_secret_value()).database
    connection = await asyncpg.connect(
        make_url(cluster.admin_url).set(database=name).render_as_string(hide_password=False)
    )
    yield connection
    await connection.close()


async def traces(admin: asyncpg.Connection, *words: str) -> dict[str, int]:
    """Rows of any table that hold one of the words, by table."""
    patterns = [f"%{word.lower()}%" for word in words or TRACES]
    found = {}
    for (table,) in await admin.fetch(TABLES):
        count = await admin.fetchval(f'SELECT count(*) FROM "{table}" t WHERE lower(t::text) LIKE ANY ($1)', patterns)
        if count:
            found[table] = count
    return found


@pytest.fixture
async def scene(
    client: httpx.AsyncClient,
    tenancy: Tenancy,
    worker: Worker,
    stub_llm: StubServer,
    owner_database: Database,
    settings: Settings,
) -> Scene:
    chat = await register_stub(stub_llm, owner_database, settings, timeout_seconds=300)
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"), chat=chat, settings=SETTINGS)
    text = "\n\n".join(f"# Part {n} of Plimquat{n}\n\n{TEXT}{' It was noted.' * 60}" for n in range(4))
    document = await upload_text(
        client, workspace_id, text, title="The Querlint", filename="zanzorb.md", media_type="text/markdown",
        metadata={"ship": "querlint"},
    )  # fmt: skip
    return Scene(client, worker, tenancy, stub_llm, document)


@pytest.mark.parametrize(
    "make", [queued, waiting_for_the_graph, extracting, merging, ready, partial, failed, cancelled, replaced],
    ids=lambda make: make.__name__,
)  # fmt: skip
async def test_a_document_leaves_no_trace_in_whatever_state_it_was_deleted(
    scene: Scene, make: Make, admin: asyncpg.Connection, container: Container, tenancy: Tenancy
) -> None:
    work = await make(scene)
    assert "documents" in await traces(admin)
    assert stored_files(container, tenancy)
    await scene.client.delete(scene.document["links"]["self"])
    if work is not None:
        await work  # its heartbeat tells it, long before the model answers
    await scene.purge()
    assert (await scene.client.get(scene.document["links"]["self"])).status_code == 404
    assert await traces(admin) == {}
    assert stored_files(container, tenancy) == []
