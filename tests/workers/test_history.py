"""The history of an index: every change of a state, written with it, by whoever makes it."""

from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from app.bootstrap import Worker
from app.db.session import Database
from app.domain.ingestion.heartbeats import Heartbeats
from app.domain.ingestion.history_repository import REASONS, HistoryRepository, Transition
from app.domain.ingestion.states import Claim, IndexStates
from tests.factories import Tenancy
from tests.workers.uploads import Upload, Uploads
from workers.task import attempt

GRAPH = ("lazy", "graph")
KEPT = 200


@pytest.fixture
async def upload(tenancy: Tenancy, uploads: Uploads) -> Upload:
    return await uploads.add(await tenancy.add_workspace(engines=GRAPH), "Ada met Ben in Lindau.", engines=GRAPH)


async def history(uploads: Uploads, upload: Upload, engine: str) -> list[Transition]:
    async with uploads.database.tenant(uploads.tenant_id) as session:
        found = await HistoryRepository(session).of_document(upload.document_id)
    return [transition for transition in found if transition.row.engine == engine]


def steps(transitions: list[Transition]) -> list[tuple[str | None, str, str]]:
    return [(each.row.from_state, each.row.to_state, each.row.reason) for each in transitions]


async def change(uploads: Uploads, method: str, *arguments: Any, **options: Any) -> Any:
    async with uploads.database.tenant(uploads.tenant_id) as session:
        return await getattr(IndexStates(session), method)(*arguments, **options)


async def claimed(uploads: Uploads, upload: Upload, lease_seconds: float = 30) -> Claim:
    claim = await change(
        uploads, "claim", upload.version_id, "lazy", "owner", lease_seconds=lease_seconds, max_attempts=9
    )
    assert isinstance(claim, Claim)
    return claim


async def test_a_document_that_went_well(worker: Worker, uploads: Uploads, upload: Upload) -> None:
    await attempt(worker.jobs, upload.process, runs=1)
    await attempt(worker.jobs, upload.index_graph, runs=1)
    begun = [(None, "queued", "added"), ("queued", "running", "claimed")]
    assert steps(await history(uploads, upload, "lazy")) == [*begun, ("running", "ready", "finished")]
    graph = await history(uploads, upload, "graph")
    assert steps(graph) == [*begun, ("running", "running", "merge_begun"), ("running", "ready", "finished")]
    assert [each.row.cleanliness for each in graph] == ["clean", "clean", "purging", "clean"]
    assert [each.row.stage for each in graph] == ["queued", "queued", "extracting", "merging"]
    assert all(each.sentence and each.version_ordinal == 1 for each in graph)
    assert [each.row.at for each in graph] == sorted(each.row.at for each in graph)


async def test_every_way_of_the_machine_is_told_with_its_reason(uploads: Uploads, upload: Upload) -> None:
    await change(uploads, "put_back", await claimed(uploads, upload), error=("model_unavailable", "answered 503"))
    await change(uploads, "hand_back", await claimed(uploads, upload))
    await change(uploads, "hand_back", await claimed(uploads, upload), stage="waiting_for_workspace")
    await claimed(uploads, upload, lease_seconds=0)
    claim = await claimed(uploads, upload)
    await change(uploads, "begin_merge", claim)
    await change(uploads, "fail", claim, "merge_timeout", "too slow")
    await change(uploads, "mark_clean", upload.version_id, "lazy")
    await change(uploads, "retry", upload.version_id, "lazy")
    await change(uploads, "finish", await claimed(uploads, upload), "partial", error=("partial_extraction", "1 of 2"))
    await change(uploads, "retry", upload.version_id, "lazy")
    await change(uploads, "cancel", upload.version_id, "lazy")
    found = await history(uploads, upload, "lazy")
    claim_step = ("queued", "running", "claimed")
    assert steps(found) == [
        (None, "queued", "added"),
        claim_step,
        ("running", "queued", "model_unavailable"),
        claim_step,
        ("running", "queued", "handed_back"),
        claim_step,
        ("running", "queued", "waiting_for_workspace"),
        claim_step,
        ("running", "running", "lease_expired"),
        ("running", "running", "merge_begun"),
        ("running", "failed", "merge_timeout"),
        ("failed", "failed", "purged"),
        ("failed", "queued", "retried"),
        claim_step,
        ("running", "partial", "partial_extraction"),
        ("partial", "queued", "retried"),
        ("queued", "cancelled", "cancelled"),
    ]
    assert [each.sentence for each in found if each.row.reason not in REASONS] == ["answered 503", "too slow", "1 of 2"]
    assert [each.row.attempt for each in found][:9] == [0, 1, 1, 2, 1, 2, 1, 2, 3]


async def test_what_is_rolled_back_never_happened_and_a_step_of_an_attempt_is_no_transition(
    uploads: Uploads, upload: Upload
) -> None:
    claim = await claimed(uploads, upload)
    before = steps(await history(uploads, upload, "lazy"))
    async with uploads.database.tenant(uploads.tenant_id) as session:
        await IndexStates(session).finish(claim, "ready")
        await session.rollback()
    await change(uploads, "progress", claim, stage="parsing")
    assert await Heartbeats(uploads.database, 30).claim(claim)
    assert steps(await history(uploads, upload, "lazy")) == before


async def test_a_change_by_any_statement_is_noted_and_no_role_writes_history(
    uploads: Uploads, upload: Upload, owner_database: Database
) -> None:
    async with owner_database.system() as session:
        await session.execute(
            text("UPDATE index_states SET state = 'failed', error_code = 'by_hand' WHERE version_id = :id"),
            {"id": upload.version_id},
        )
    assert steps(await history(uploads, upload, "graph"))[-1] == ("queued", "failed", "by_hand")
    for statement in ("UPDATE index_transitions SET reason = 'x'", "DELETE FROM index_transitions"):
        with pytest.raises(ProgrammingError, match="permission denied"):
            await uploads.scalar(statement)


async def test_the_history_of_an_index_is_bounded_and_goes_with_its_version(uploads: Uploads, upload: Upload) -> None:
    for _ in range(KEPT // 2 + 5):
        await change(uploads, "hand_back", await claimed(uploads, upload))
    found = await history(uploads, upload, "lazy")
    assert len(found) == KEPT
    assert found[-1].row.ordinal == KEPT + 11
    await uploads.scalar("DELETE FROM versions WHERE id = :id RETURNING 1", id=upload.version_id)
    assert await uploads.count("index_transitions", upload) == 0
