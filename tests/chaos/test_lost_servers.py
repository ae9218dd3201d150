"""Postgres and Redis go away and come back: no process is restarted, and no document is lost."""

import asyncio

import pytest

from tests.chaos.stack import ChaosStack
from tests.chaos.stages import PLACE, documents, held_by_model, nothing_is_left, until
from tests.chaos.user import User

# Longer than Postgres is away on a busy machine.
OUTAGE_SECONDS = 60

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]


def process_ids(stack: ChaosStack) -> list[int]:
    return [child.process.pid for child in stack.processes.children if not child.ended()]


async def test_the_first_request_after_a_restart_of_postgres_is_answered(stack: ChaosStack, user: User) -> None:
    """C14."""
    await user.make_workspaces([PLACE])
    stack.start_worker()
    async with held_by_model(stack, "extract") as reached:
        await user.upload(documents(4))
        await reached()
        before = process_ids(stack)
        await asyncio.to_thread(stack.stop_postgres)
        try:
            answer = await user.ask("GET", "/readyz", repeat=False)
            assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
            assert answer.json()["checks"]["postgres"] != "ok"
            down = await user.ask("GET", "/v1/workspaces", repeat=False)
            assert down.status_code == 503
        finally:
            await asyncio.to_thread(stack.start_postgres)
        first = await user.ask("GET", "/v1/workspaces", repeat=False)
        assert (first.status_code, [item["name"] for item in first.json()["items"]]) == (200, [PLACE])

        async def is_ready() -> bool:
            """What was found is told for a second."""
            return (await user.ask("GET", "/readyz", repeat=False)).status_code == 200

        await until(is_ready)
    assert {item["status"] for item in (await user.settled(PLACE)).values()} == {"ready"}
    assert process_ids(stack) == before
    await nothing_is_left(stack)


async def test_answers_that_come_while_postgres_is_away_are_not_paid_for_again(stack: ChaosStack, user: User) -> None:
    """In an outage shorter than a lease; whoever has lost its claim is called off with the calls that are under way."""
    await user.make_workspaces([PLACE])
    stack.start_worker(lease_seconds=OUTAGE_SECONDS)
    async with held_by_model(stack, "extract") as reached:
        await user.upload(documents(3))
        await reached()
        await asyncio.to_thread(stack.stop_postgres, "immediate")
    await until(lambda: _is_silent(stack))
    await asyncio.to_thread(stack.start_postgres)
    # Both look for work now; only one of them holds answers.
    stack.start_worker(lease_seconds=OUTAGE_SECONDS)
    assert {item["status"] for item in (await user.settled(PLACE)).values()} == {"ready"}
    stats = stack.stub.stats()
    assert (stats["repeated_extractions"], stats["distinct_extractions"]) == (0, sum(t.sections for t in documents(3)))


async def _is_silent(stack: ChaosStack) -> bool:
    return not stack.stub.stats()["in_flight"]


async def test_what_was_queued_survives_an_emptied_broker(stack: ChaosStack, user: User) -> None:
    await user.make_workspaces([PLACE])
    await user.upload(documents(5))
    await stack.flush_redis()
    stack.start_worker()
    assert {item["status"] for item in (await user.settled(PLACE)).values()} == {"ready"}
    await nothing_is_left(stack)


async def test_a_worker_outlives_its_broker_with_jobs_under_way(stack: ChaosStack, user: User) -> None:
    """Of the jobs, some end while the broker is away and some after it has come back."""
    await user.make_workspaces([PLACE])
    worker = stack.start_worker()
    async with held_by_model(stack, "extract") as reached:
        await user.upload(documents(3))
        await reached()
        await asyncio.to_thread(stack.stop_redis)
        told = stack.log(worker.name)
    await until(lambda: _says(stack, "succeeded", told))
    await asyncio.to_thread(stack.start_redis)
    assert {item["status"] for item in (await user.settled(PLACE)).values()} == {"ready"}
    await user.upload(documents(6)[3:])
    assert {item["status"] for item in (await user.settled(PLACE)).values()} == {"ready"}
    assert not worker.ended()
    await nothing_is_left(stack)


async def _says(stack: ChaosStack, words: str, before: str) -> bool:
    return words in stack.log()[len(before) :]
