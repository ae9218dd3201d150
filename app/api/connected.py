"""An end of the work for a request when nobody waits for its answer any more, or the server cannot wait for it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from app.errors import Unavailable

Done = TypeVar("Done")
# What a call that is broken off still does: its usage is booked, its slots are given back.
ENDING_SECONDS = 8.0
# Beside the running request nobody holds the task that ends a call.
_running: set[asyncio.Task[Any]] = set()


class ServerStopping(Unavailable):
    """The process was told to end and could wait no longer for this answer; another one can be asked at once."""

    code = "server_stopping"
    title = "The server is being stopped"


async def while_connected(request: Request, work: Coroutine[Any, Any, Done]) -> Done:
    """The result of `work`, which is cancelled when the client goes. Raises ClientDisconnect then, or ServerStopping."""
    task, gone = in_background(while_serving(request, work)), in_background(_disconnect(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return await task
    finally:
        task.cancel()
        gone.cancel()


async def while_serving(request: Request, work: Coroutine[Any, Any, Done]) -> Done:
    """The result of `work`, which is broken off when the server can wait no longer. Raises ServerStopping then."""
    task, overdue = in_background(work), in_background(request.app.state.stopping.overdue.wait())
    try:
        await asyncio.wait({task, overdue}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=ENDING_SECONDS)
            raise ServerStopping("The server is being stopped; ask again.")
        return await task
    finally:
        task.cancel()
        overdue.cancel()


async def all_ended() -> None:
    """Wait for what is still being booked of calls that were broken off."""
    if _running:
        await asyncio.wait(_running, timeout=ENDING_SECONDS)


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
