"""Claims and leases of one process are kept alive together, without getting into each other's way."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, text

from app.db.base import WorkspaceId
from app.db.session import Database
from app.domain.ingestion.heartbeats import Heartbeats
from app.domain.ingestion.leases import WorkspaceLeases
from app.domain.ingestion.states import Claim, IndexStates
from app.retrieval.contract import Lease, WorkspaceRef
from tests.factories import Tenancy
from tests.workers.uploads import Upload, Uploads

LOCK = text("SELECT 1 FROM index_states WHERE version_id = :version FOR UPDATE")
EXPIRY = "SELECT lease_expires_at FROM index_states WHERE version_id = :version"


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """What is sent inside, but for the beginnings and ends of transactions, with which goes who asks."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    event.listen(database.engine.sync_engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(database.engine.sync_engine, "before_cursor_execute", note)


async def claimed(uploads: Uploads, upload: Upload, owner: str) -> Claim:
    async with uploads.database.tenant(uploads.tenant_id) as session:
        claim = await IndexStates(session).claim(upload.version_id, "lazy", owner, lease_seconds=30, max_attempts=3)
    assert isinstance(claim, Claim)
    return claim


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return WorkspaceId(await tenancy.add_workspace())


@pytest.fixture
async def claims(uploads: Uploads, workspace_id: WorkspaceId) -> list[Claim]:
    return [
        await claimed(uploads, await uploads.add(workspace_id, f"Text {number}."), f"owner {number}")
        for number in range(3)
    ]


@pytest.fixture
async def lease(database: Database, tenancy: Tenancy, workspace_id: WorkspaceId) -> Lease:
    taken = await WorkspaceLeases(database, 30).take(WorkspaceRef(tenancy.tenant_id, workspace_id, 0))
    assert taken is not None
    return taken


async def test_beats_that_come_together_share_a_transaction(
    uploads: Uploads, claims: list[Claim], lease: Lease
) -> None:
    beats = Heartbeats(uploads.database, 3000)
    before = [await uploads.scalar(EXPIRY, version=claim.version_id) for claim in claims]
    with statements(uploads.database) as sent:
        held = await asyncio.gather(*map(beats.claim, claims), beats.lease(lease))
    assert held == [True] * 4
    assert len(sent) == 2
    for claim, expiry in zip(claims, before, strict=True):
        assert await uploads.scalar(EXPIRY, version=claim.version_id) > expiry


async def test_a_row_in_its_holders_last_transaction_keeps_no_other_beat_waiting(
    uploads: Uploads, claims: list[Claim]
) -> None:
    beats = Heartbeats(uploads.database, 3000)
    locked, other = claims[:2]
    before = await uploads.scalar(EXPIRY, version=other.version_id)
    async with uploads.database.tenant(uploads.tenant_id) as session:
        await session.execute(LOCK, {"version": locked.version_id})
        assert list(await asyncio.gather(beats.claim(locked), beats.claim(other))) == [True, True]
        assert await uploads.scalar(EXPIRY, version=other.version_id) > before


async def test_what_was_taken_away_is_told_to_its_owner_only(uploads: Uploads, claims: list[Claim]) -> None:
    beats = Heartbeats(uploads.database, 30)
    gone, kept = claims[:2]
    async with uploads.database.tenant(uploads.tenant_id) as session:
        await IndexStates(session).cancel(gone.version_id, "lazy")
    assert list(await asyncio.gather(beats.claim(gone), beats.claim(kept))) == [False, True]


async def test_whoever_stops_stops_no_other(uploads: Uploads, claims: list[Claim]) -> None:
    beats = Heartbeats(uploads.database, 30)
    first, second = (asyncio.ensure_future(beats.claim(claim)) for claim in claims[:2])
    await asyncio.sleep(0)
    first.cancel()
    assert await second
    assert first.cancelled()
