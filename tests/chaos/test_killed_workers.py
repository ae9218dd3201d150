"""A worker is killed at each stage of its work: another one finishes, pays for nothing twice, and nothing is left over."""

import pytest

from tests.chaos.stack import ChaosStack
from tests.chaos.stages import (
    PLACE,
    SUMMARIES,
    Stage,
    committing,
    documents,
    embedding,
    extracting,
    merging,
    nothing_is_left,
    parsing,
    writing,
)
from tests.chaos.user import User

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]


@pytest.mark.parametrize("stage", [parsing, embedding, writing, extracting, merging, committing])
async def test_what_a_killed_worker_began_is_finished_by_another(stack: ChaosStack, user: User, stage: Stage) -> None:
    first, second = documents()
    await user.make_workspaces([PLACE], **SUMMARIES)
    helper = stack.start_worker()
    await user.upload([first])
    assert {item["status"] for item in (await user.settled(PLACE)).values()} == {"ready"}
    stack.kill(helper)

    async with stage(stack, user.tenant) as reached:
        victim = stack.start_worker("--concurrency", "1")
        await user.upload([second])
        await reached()
        in_flight = stack.stub.stats()["in_flight"].get("extract", 0)
        stack.kill(victim)
    stack.start_worker()
    found = await user.settled(PLACE)
    assert {name: item["status"] for name, item in found.items()} == {first.filename: "ready", second.filename: "ready"}
    stats = stack.stub.stats()
    assert stats["repeated_extractions"] <= in_flight
    assert stats["distinct_extractions"] == first.sections + second.sections
    await nothing_is_left(stack)


async def test_the_other_documents_of_a_killed_worker_need_no_upload(stack: ChaosStack, user: User) -> None:
    """C16: five are queued and the worker dies in the second; the first is left alone."""
    first, *others = documents(5)
    await user.make_workspaces([PLACE])
    victim = stack.start_worker("--concurrency", "1")
    await user.upload([first])
    done = (await user.settled(PLACE))[first.filename]
    async with extracting(stack, user.tenant) as reached:
        await user.upload(others)
        await reached()
        stack.kill(victim)
    stack.start_worker()
    found = await user.settled(PLACE)
    assert {item["status"] for item in found.values()} == {"ready"}
    assert found[first.filename] == done
    await nothing_is_left(stack)
