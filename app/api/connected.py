"""An end of the work for a request when nobody waits for its answer any more."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

Done = TypeVar("Done")
# Beside the running request nobody holds the task that ends a call.
_running: set[asyncio.Task[Any]] = set()


async def while_connected(request: Request, work: Coroutine[Any, Any, Done]) -> Done:
    """The result of `work`, which is cancelled when the client goes. Raises ClientDisconnect then."""
    task, gone = in_background(work), in_background(_disconnect(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return await task
    finally:
        task.cancel()
        gone.cancel()


async def _disconnect(request: Request) -> None:
    # The body has been read: what comes next is the end.
    while (await request.receive())["type"] != "http.disconnect":
        pass


def in_background(work: Coroutine[Any, Any, Done]) -> asyncio.Task[Done]:
    """A task that is held until it ends, and whose failure is nobody's where it is awaited no more."""
    task = asyncio.create_task(work)
    _running.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if not task.cancelled():
        task.exception()
