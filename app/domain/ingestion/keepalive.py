"""Keeps a lease alive while a block runs, and stops the block when the lease is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from app.db.session import CONNECTION_ERRORS

# Often enough that a cancelled or deleted document stops its work within seconds, whatever the lease's length.
LONGEST_BEAT_SECONDS = 1.0
SHORTEST_WAIT_SECONDS = 2.0


@asynccontextmanager
async def kept_alive(
    extend: Callable[[], Awaitable[bool]], lease_seconds: float, lost: Callable[[], Exception]
) -> AsyncIterator[None]:
    """Call `extend` again and again; once it says False, or could not be asked for `lease_seconds`, the block is
    cancelled and `lost()` raised in its place."""
    scope = asyncio.timeout(None)
    try:
        async with scope:
            beat = asyncio.create_task(_beat(extend, lease_seconds, scope))
            try:
                yield
            finally:
                beat.cancel()
                await asyncio.wait([beat])
    except TimeoutError:
        if scope.expired():
            raise lost() from None
        raise


async def _beat(extend: Callable[[], Awaitable[bool]], lease_seconds: float, scope: asyncio.Timeout) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + lease_seconds
    while True:
        # Whatever began when: all of a process beat at the same moments, so that they can share a statement.
        interval = min(lease_seconds / 3, LONGEST_BEAT_SECONDS)
        await asyncio.sleep(interval - loop.time() % interval)
        asked_at = loop.time()
        try:
            # Asked even after the deadline: a process that was merely slow still has its lease if nobody took it.
            async with asyncio.timeout(max(deadline - asked_at, SHORTEST_WAIT_SECONDS)):
                is_held = await extend()
        except CONNECTION_ERRORS:
            is_held = loop.time() < deadline
        else:
            deadline = asked_at + lease_seconds
        if not is_held:
            scope.reschedule(loop.time())
            return
