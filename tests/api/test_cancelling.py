"""Calling off the indexing of a document: work stops within seconds wherever it is, and a retry goes on."""

import asyncio
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.bootstrap import Worker
from app.db.base import WorkspaceId
from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.domain.tenants.records import Role
from app.jobs import IndexGraph, ProcessVersion, PurgeGraphVersion
from app.settings import Settings
from tests.api.conftest import Connect, Index
from tests.api.documents import set_state, until, upload_text
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer
from tests.workers.reports import report
from tests.workers.uploads import Uploads
from workers.task import attempt

# Work is told to stop by its next heartbeat; a test that waits longer than this has not been stopped.
pytestmark = pytest.mark.timeout(60)
# Shorter than what the stub is given to end.
SLOW = {"kind": "extract", "delay_ms": 9_000}


@pytest.fixture
async def chat(stub_llm: StubServer, owner_database: Database, settings: Settings) -> str:
    return await register_stub(stub_llm, owner_database, settings, timeout_seconds=300)


@pytest.fixture
async def workspace_id(tenancy: Tenancy, chat: str) -> WorkspaceId:
    return await tenancy.add_workspace(engines=("lazy", "graph"), chat=chat)


@pytest.fixture
async def document(client: httpx.AsyncClient, workspace_id: WorkspaceId) -> Any:
    return await upload_text(client, workspace_id, "Captain Ada Moreau left Port Lindau.")


def job(kind: Any, tenancy: Tenancy, document: Any) -> Any:
    return kind(tenancy.tenant_id, UUID(document["workspace_id"]), UUID(document["version"]["id"]))


async def cancel(client: httpx.AsyncClient, document: Any) -> Any:
    response = await client.post(f"{document['links']['self']}/cancel")
    assert response.status_code == 202, response.text
    assert response.headers["location"] == document["links"]["self"]
    return response.json()


async def read(client: httpx.AsyncClient, document: Any) -> Any:
    return (await client.get(document["links"]["self"])).json()


async def reaches(client: httpx.AsyncClient, document: Any, engine: str, stage: str) -> None:
    async def is_there() -> bool:
        found: str = (await read(client, document))["engines"][engine]["stage"]
        return found == stage

    await until(is_there)


async def calls_in_flight(stub: StubServer) -> int:
    stats = await asyncio.to_thread(stub.stats)
    return sum(stats["calls"].values())


async def summaries_in_flight(stub: StubServer) -> int:
    found: int = (await asyncio.to_thread(stub.stats))["in_flight"].get("summary", 0)
    return found


async def chunks_done(client: httpx.AsyncClient, document: Any) -> int:
    found: int = (await read(client, document))["engines"]["graph"]["chunks_done"]
    return found


async def retried(client: httpx.AsyncClient, tenancy: Tenancy, index: Index, document: Any) -> Any:
    response = await client.post(f"{document['links']['self']}/retry")
    assert response.status_code == 202, response.text
    await index(tenancy, response.json())
    return await read(client, document)


async def test_what_is_queued_is_never_begun(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker, index: Index, document: Any
) -> None:
    found = await cancel(client, document)
    assert found["status"] == "cancelled"
    assert {engine["state"] for engine in found["engines"].values()} == {"cancelled"}
    await attempt(worker.jobs, job(ProcessVersion, tenancy, document), runs=1)
    assert (await read(client, document))["status"] == "cancelled"
    assert (await retried(client, tenancy, index, document))["status"] == "ready"


async def test_a_text_that_is_being_read_is_let_go(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker, workspace_id: WorkspaceId, index: Index
) -> None:
    text = "\n\n".join(f"# Part {n}\n\nAda Moreau met person {n} in Lindau {n}." for n in range(3000))
    document = await upload_text(client, workspace_id, text, media_type="text/markdown")
    work = asyncio.create_task(attempt(worker.jobs, job(ProcessVersion, tenancy, document), runs=1))
    await reaches(client, document, "lazy", "embedding")
    await cancel(client, document)
    assert await work is None
    assert (await read(client, document))["status"] == "cancelled"


async def test_model_calls_in_flight_are_given_up(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker, index: Index, document: Any, stub_llm: StubServer
) -> None:
    await attempt(worker.jobs, job(ProcessVersion, tenancy, document), runs=1)
    stub_llm.set_faults(SLOW)
    work = asyncio.create_task(attempt(worker.jobs, job(IndexGraph, tenancy, document), runs=1))
    await reaches(client, document, "graph", "extracting")
    await until(lambda: calls_in_flight(stub_llm))
    await cancel(client, document)
    assert await work is None
    assert (await asyncio.to_thread(stub_llm.stats))["tokens"] == {}  # nobody waited for the answer
    found = await read(client, document)
    assert (found["status"], found["engines"]["lazy"]["state"]) == ("cancelled", "ready")
    assert "lazy" in found["queryable_modes"]
    stub_llm.reset()
    assert (await retried(client, tenancy, index, document))["status"] == "ready"


async def test_who_waits_for_the_workspace_stops_waiting(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker, workspace_id: WorkspaceId, index: Index, document: Any
) -> None:
    await attempt(worker.jobs, job(ProcessVersion, tenancy, document), runs=1)
    ref = (await worker.container.workspaces.open(tenancy.tenant_id, workspace_id)).ref
    async with worker.container.leases.hold(ref, wait_seconds=5):
        work = asyncio.create_task(attempt(worker.jobs, job(IndexGraph, tenancy, document), runs=1))
        await until(lambda: chunks_done(client, document))
        await cancel(client, document)
        assert await work is None
        assert (await read(client, document))["status"] == "cancelled"
    assert (await retried(client, tenancy, index, document))["status"] == "ready"


async def test_a_merge_that_is_going_on_stops_at_once_and_leaves_nothing(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker, index: Index, chat: str, stub_llm: StubServer,
    urls: DatabaseUrls,
) -> None:  # fmt: skip
    """The insert waits for the model to sum up what many chunks say of one name; the workspace is its own meanwhile."""
    settings = {"chunk_strategy": "sentence", "chunk_tokens": 200, "summary_after_fragments": 2}
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"), chat=chat, settings=settings)
    document = await upload_text(client, workspace_id, report(), media_type="text/markdown")
    await attempt(worker.jobs, job(ProcessVersion, tenancy, document), runs=1)
    stub_llm.set_faults({"kind": "summary", "delay_ms": 50_000, "times": 100, "name": "slow"})
    work = asyncio.create_task(attempt(worker.jobs, job(IndexGraph, tenancy, document), runs=1))
    await until(lambda: summaries_in_flight(stub_llm))
    assert (await read(client, document))["engines"]["graph"]["stage"] == "merging"
    await cancel(client, document)
    assert await work is None
    assert "summary_in" not in (await asyncio.to_thread(stub_llm.stats))["tokens"]  # nobody waited for the answer
    await attempt(worker.jobs, job(PurgeGraphVersion, tenancy, document), runs=1)
    uploads = Uploads(tenancy.database, worker.container.blobs, tenancy.tenant_id)
    assert await uploads.engine_rows(workspace_id, urls.engine) == {}  # but for the answers, which are paid for
    lease = (
        "SELECT count(*) FROM workspace_leases WHERE workspace_id = :id AND owner IS NOT NULL AND expires_at > now()"
    )
    assert await uploads.scalar(lease, id=workspace_id) == 0
    assert (await read(client, document))["status"] == "cancelled"
    extractions = (await asyncio.to_thread(stub_llm.stats))["calls"]["extract"]
    stub_llm.clear_faults("slow")
    assert (await retried(client, tenancy, index, document))["status"] == "ready"
    assert (await asyncio.to_thread(stub_llm.stats))["calls"]["extract"] == extractions


async def test_a_merge_that_is_called_off_leaves_nothing(
    client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker, index: Index, document: Any
) -> None:
    await attempt(worker.jobs, job(ProcessVersion, tenancy, document), runs=1)
    await set_state(
        tenancy, document, "graph", state="running", stage="merging", cleanliness="purging", lease_owner="somebody"
    )
    assert (await cancel(client, document))["status"] == "processing"  # until its remains are gone
    await attempt(worker.jobs, job(PurgeGraphVersion, tenancy, document), runs=1)
    assert (await read(client, document))["status"] == "cancelled"
    assert (await retried(client, tenancy, index, document))["status"] == "ready"


async def test_what_is_ready_or_cancelled_cannot_be_called_off(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index, document: Any
) -> None:
    await cancel(client, document)
    again = await client.post(f"{document['links']['self']}/cancel")
    assert (again.status_code, again.json()["code"], again.json()["document_status"]) == (
        409, "nothing_to_cancel", "cancelled",
    )  # fmt: skip
    await retried(client, tenancy, index, document)
    assert (await client.post(f"{document['links']['self']}/cancel")).json()["document_status"] == "ready"
    await client.delete(document["links"]["self"])
    assert (await client.post(f"{document['links']['self']}/cancel")).json()["code"] == "document_deleting"


async def test_readers_call_nothing_off(connect: Connect, tenancy: Tenancy, document: Any) -> None:
    reader = await connect(tenancy, Role.READER)
    assert (await reader.post(f"{document['links']['self']}/cancel")).json()["code"] == "role_required"
