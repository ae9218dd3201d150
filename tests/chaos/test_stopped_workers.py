"""A worker that stood still while another one took over finds that out when it wakes, and writes nothing."""

import asyncio
from typing import Any

import pytest

from tests.chaos.checks import open_ends, unowned_rows
from tests.chaos.snapshot import Snapshot, differences, take_snapshot
from tests.chaos.stack import LEASE_SECONDS, ChaosStack
from tests.chaos.stages import (
    PLACE,
    SUMMARIES,
    Stage,
    committing,
    documents,
    extracting,
    merging,
    until,
    writing,
)
from tests.chaos.user import User

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

LEASES = """
SELECT l.epoch, l.owner, l.unit_id FROM workspace_leases l JOIN tenants t ON t.id = l.tenant_id WHERE t.name = $1"""
STATES = """
SELECT s.version_id, s.engine, s.attempts, s.lease_owner, s.state, s.finished_at, s.changed_at
  FROM index_states s JOIN tenants t ON t.id = s.tenant_id WHERE t.name = $1 ORDER BY 1, 2"""


async def written(stack: ChaosStack, tenant: str) -> tuple[Snapshot, list[Any], list[Any]]:
    async with stack.connection() as connection:
        rows = await take_snapshot(connection, tenant)
        return rows, await connection.fetch(LEASES, tenant), await connection.fetch(STATES, tenant)


@pytest.mark.parametrize("stage", [writing, extracting, merging, committing])
async def test_a_worker_that_overslept_its_lease_writes_nothing(stack: ChaosStack, user: User, stage: Stage) -> None:
    first, second = documents()
    await user.make_workspaces([PLACE], **SUMMARIES)
    sleeper = stack.start_worker("--concurrency", "1")
    await user.upload([first])
    await user.settled(PLACE)

    async with stage(stack, user.tenant) as reached:
        await user.upload([second])
        await reached()
        stack.freeze(sleeper)
        await asyncio.sleep(2 * LEASE_SECONDS)
    stack.start_worker("--concurrency", "1")
    assert {item["status"] for item in (await user.settled(PLACE)).values()} == {"ready"}
    rows, leases, states = await written(stack, user.tenant)

    told = stack.log(sleeper.name)
    stack.thaw(sleeper)

    async def has_noticed() -> bool:
        new = stack.log(sleeper.name)[len(told) :]
        return "attempt_superseded" in new or "job_not_concluded" in new

    await until(has_noticed)
    after = await written(stack, user.tenant)
    assert differences(rows, after[0]) == []
    assert (leases, states) == after[1:]
    async with stack.connection() as connection:
        assert await open_ends(connection) == []
        assert await unowned_rows(connection) == []
