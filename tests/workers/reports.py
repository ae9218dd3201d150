"""Documents of a known number of chunks, and the steps of their graphs."""

from uuid import uuid4

from sqlalchemy import select

from app.bootstrap import Worker
from app.db.base import WorkspaceId
from app.db.models import IndexState
from app.domain.ingestion.states import IndexStates
from app.retrieval.contract import Engine
from tests.workers.uploads import Upload, Uploads
from workers.task import attempt

CHUNKS = 6
GRAPH: tuple[Engine, ...] = ("lazy", "graph")
SMALL_CHUNKS = {"chunk_strategy": "sentence", "chunk_tokens": 200}


def report(chunks: int = CHUNKS) -> str:
    """A document of so many chunks under `SMALL_CHUNKS`, each with names of its own and one shared name."""
    name = uuid4().hex[:6].capitalize()
    filler = " It was noted in the log of the yard and read again in the evening by the people on watch." * 3
    return "\n\n".join(
        f"# Voyage {n}\n\nCaptain Marker{n} of the ship Albatross{n}{name} met Governor Halloran there.{filler}"
        for n in range(chunks)
    )


async def run_graph(worker: Worker, upload: Upload) -> float | None:
    """One attempt, in as many turns as it takes: messages of other tests wait in the queues that it gives way to."""
    while True:
        delay = await attempt(worker.jobs, upload.index_graph, runs=1)
        if delay is not None or not await _gave_way(worker, upload):
            return delay


async def _gave_way(worker: Worker, upload: Upload) -> bool:
    async with worker.container.database.tenant(upload.tenant_id) as session:
        state = await session.scalar(
            select(IndexState).where(IndexState.version_id == upload.version_id, IndexState.engine == "graph")
        )
    return state is not None and (state.state, state.stage) == ("queued", "queued") and state.chunks_done > 0


async def retry(uploads: Uploads, upload: Upload) -> bool:
    async with uploads.database.tenant(uploads.tenant_id) as session:
        return await IndexStates(session).retry(upload.version_id, "graph")


async def chunk_failures(uploads: Uploads, upload: Upload) -> dict[int, str]:
    """Codes of the chunks that failed, by ordinal."""
    found = "SELECT jsonb_object_agg(ordinal, error_code) FROM chunks WHERE version_id = :id AND state = 'failed'"
    failed = await uploads.scalar(found, id=upload.version_id) or {}
    return {int(ordinal): code for ordinal, code in failed.items()}


async def extracted_text(worker: Worker, uploads: Uploads, workspace_id: WorkspaceId, chunks: int = CHUNKS) -> Upload:
    """An upload whose text is there and whose graph is due."""
    upload = await uploads.add(workspace_id, report(chunks), "report.md", engines=GRAPH)
    await attempt(worker.jobs, upload.process, runs=1)
    assert await uploads.count("chunks", upload) == chunks
    return upload
