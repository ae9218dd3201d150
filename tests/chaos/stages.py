"""Holds a worker at a stage of its work, so that it can be hurt exactly there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.chaos.checks import broken_histories, open_ends, stray_files, unowned_rows
from tests.chaos.corpus import Text, make_corpus
from tests.chaos.stack import ChaosStack

Reached = Callable[[], Awaitable[None]]
Stage = Callable[[ChaosStack, str], AbstractAsyncContextManager[Reached]]
PLACE = "beacon0"
# Entities that two documents share are summed up by the model while they are merged.
SUMMARIES = {"summary_after_fragments": 2}

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = $1::text::regclass"
STAGE = """
SELECT count(*) FROM index_states s JOIN tenants t ON t.id = s.tenant_id
 WHERE t.name = $1 AND s.state = 'running' AND s.engine = $2 AND s.stage = $3"""

LONG_MS = 3_600_000


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something that a process does; the test's own time limit ends a wait that is in vain."""
    while True:
        if await condition():
            return
        await asyncio.sleep(0.02)


@asynccontextmanager
async def held_by_model(stack: ChaosStack, kind: str) -> AsyncIterator[Reached]:
    """Calls of a kind are not answered within the block. Gives a function that waits until there is one."""
    stack.stub.set_faults({"kind": kind, "delay_ms": LONG_MS, "times": 10**6, "name": kind})

    async def reached() -> None:
        await until(lambda: _in_flight(stack, kind))

    try:
        yield reached
    finally:
        stack.stub.clear_faults(kind)


async def _in_flight(stack: ChaosStack, kind: str) -> bool:
    return bool(stack.stub.stats()["in_flight"].get(kind, 0))


@asynccontextmanager
async def held_at_write(stack: ChaosStack, table: str, tenant: str, engine: str, stage: str) -> AsyncIterator[Reached]:
    """Transactions that write `table` stand still within the block, with all that they have written before."""
    async with stack.connection() as connection, connection.transaction():
        await connection.execute(f"LOCK TABLE {table} IN SHARE MODE")

        async def reached() -> None:
            await until(lambda: is_at(stack, tenant, engine, stage))
            await until(lambda: _waits(stack, table))

        yield reached


async def is_at(stack: ChaosStack, tenant: str, engine: str, stage: str) -> bool:
    return bool(await stack.scalar(STAGE, tenant, engine, stage))


async def _waits(stack: ChaosStack, table: str) -> bool:
    return bool(await stack.scalar(WAITING, table))


@asynccontextmanager
async def parsing(stack: ChaosStack, tenant: str) -> AsyncIterator[Reached]:
    async def reached() -> None:
        await until(lambda: is_at(stack, tenant, "lazy", "parsing"))

    yield reached


def embedding(stack: ChaosStack, tenant: str) -> AbstractAsyncContextManager[Reached]:
    return held_by_model(stack, "embed")


def writing(stack: ChaosStack, tenant: str) -> AbstractAsyncContextManager[Reached]:
    return held_at_write(stack, "live_versions", tenant, "lazy", "embedding")


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
