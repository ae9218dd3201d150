"""A worker is killed at each stage of its work: another one finishes, pays for nothing twice, and nothing is left over."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from tests.chaos.checks import broken_histories, open_ends, stray_files, unowned_rows
from tests.chaos.corpus import Text, make_corpus
from tests.chaos.stack import ChaosStack
from tests.chaos.stages import held_at_write, held_by_model, is_at, until
from tests.chaos.user import User

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

Reached = Callable[[], Awaitable[None]]
Stage = Callable[[ChaosStack, str], AbstractAsyncContextManager[Reached]]
PLACE = "beacon0"
# Entities that two documents share are summed up by the model while they are merged.
SUMMARIES = {"summary_after_fragments": 2}


@asynccontextmanager
async def parsing(stack: ChaosStack, tenant: str) -> AsyncIterator[Reached]:
    async def reached() -> None:
        await until(lambda: is_at(stack, tenant, "lazy", "parsing"))

    yield reached


def embedding(stack: ChaosStack, tenant: str) -> AbstractAsyncContextManager[Reached]:
    return held_by_model(stack, "embed")


def writing(stack: ChaosStack, tenant: str) -> AbstractAsyncContextManager[Reached]:
    return held_at_write(stack, "corpus_versions", tenant, "lazy", "indexing")


def extracting(stack: ChaosStack, tenant: str) -> AbstractAsyncContextManager[Reached]:
    return held_by_model(stack, "extract")


def merging(stack: ChaosStack, tenant: str) -> AbstractAsyncContextManager[Reached]:
    return held_by_model(stack, "summary")


def committing(stack: ChaosStack, tenant: str) -> AbstractAsyncContextManager[Reached]:
    return held_at_write(stack, "lightrag_doc_status", tenant, "graph", "merging")


def documents(count: int = 2) -> list[Text]:
    return make_corpus(7, documents=count, workspaces=1)


async def nothing_is_left(stack: ChaosStack) -> None:
    async with stack.connection() as connection:
        assert await open_ends(connection) == []
        assert await unowned_rows(connection) == []
        assert await broken_histories(connection) == []
    assert await stray_files(stack) == []


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
