"""A tenant with a large backlog does not hide the lost work of another one."""

from datetime import timedelta
from itertools import permutations
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from app.db.session import Database
from app.domain.ingestion.purge_repository import StaleWork
from app.domain.ingestion.sweeper import JOBS, LOCKED, in_lock_order, in_turns
from app.jobs import MergeDuplicates, PurgeDocument, PurgeGraphVersion, RefreshThemes
from tests.factories import Tenancy
from tests.workers.uploads import Upload, Uploads

# More than other tests leave behind.
ALL = 100_000


async def age(uploads: Uploads, upload: Upload, statement: str, hours: int) -> None:
    async with uploads.database.tenant(uploads.tenant_id) as session:
        values = {"version": upload.version_id, "document": upload.document_id, "hours": hours}
        await session.execute(text(statement), {key: values[key] for key in values if f":{key}" in statement})


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        (
            "queued_lazy",
            "UPDATE index_states SET changed_at = now() - make_interval(hours => :hours) WHERE version_id = :version",
        ),
        (
            "expired_lazy",
            "UPDATE index_states SET state = 'running', lease_owner = 'dead', lease_expires_at = now() - make_interval(hours => :hours)"
            " WHERE version_id = :version",
        ),
        ("document", "UPDATE documents SET deleting_at = now() - make_interval(hours => :hours) WHERE id = :document"),
    ],
)
async def test_the_oldest_of_each_tenant_comes_before_the_second_of_any(
    kind: str, statement: str, tenancy: Tenancy, other_tenancy: Tenancy, uploads: Uploads, database: Database
) -> None:
    theirs = Uploads(other_tenancy.database, uploads.blobs, other_tenancy.tenant_id)
    backlog = [await uploads.add(await tenancy.add_workspace(), f"Text {n}.") for n in range(3)]
    lost = await theirs.add(await other_tenancy.add_workspace(), "Another text.")
    for number, upload in enumerate(backlog):
        await age(uploads, upload, statement, 9 - number)
    await age(theirs, lost, statement, 1)
    async with database.system() as session:
        rows = await StaleWork(session).list(timedelta(seconds=60), ALL)
    found = [row.subject_id for row in rows if row.kind == kind]
    ids = [upload.document_id if kind == "document" else upload.version_id for upload in (*backlog, lost)]
    first, second, third, other = map(found.index, ids)
    assert other < second
    assert first < second < third


def test_the_room_of_a_queue_is_given_out_in_turns_over_all_kinds() -> None:
    tenants = [uuid4(), uuid4()]
    place = UUID(int=0)
    backlog = [("purging", PurgeGraphVersion(tenants[0], place, uuid4())) for _ in range(3)]
    lost = [("document", PurgeDocument(tenants[1], place, uuid4())) for _ in range(2)]
    assert in_turns([*backlog, *lost]) == [backlog[0], lost[0], backlog[1], lost[1], backlog[2]]


def test_rows_are_locked_in_one_order_by_all_sweepers() -> None:
    """Both kinds of looks at a workspace lock the same row: one sweeper that found (a, b) and one that found (b, a) wait."""
    tenant, first, second = sorted(uuid4() for _ in range(3))
    jobs = [MergeDuplicates(tenant, first), RefreshThemes(tenant, first), RefreshThemes(tenant, second)]
    document = PurgeDocument(tenant, second, uuid4())
    for found in permutations((*jobs, document)):
        ordered = in_lock_order(found)
        assert ordered[0] == document
        assert ordered[-1] == jobs[-1]


def test_every_kind_of_work_has_its_place_in_that_order() -> None:
    row = SimpleNamespace(tenant_id=uuid4(), workspace_id=uuid4(), subject_id=uuid4())
    assert {type(job(row)) for job in JOBS.values()} <= set(LOCKED)
