"""Holds a worker at a stage of its work, so that it can be hurt exactly there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.chaos.stack import ChaosStack

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
async def held_by_model(stack: ChaosStack, kind: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
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
async def held_at_write(
    stack: ChaosStack, table: str, tenant: str, engine: str, stage: str
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
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
