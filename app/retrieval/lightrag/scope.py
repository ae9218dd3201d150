"""Ends what an operation has started, when the operation ends: by itself, by an error, or cut off by a time limit.

LightRAG leaves tasks behind when it is cancelled (facts F6). They would go on asking models, and its own storages would
take what they write. They inherit the operation's scope, and after its end neither a model nor the database answers them.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any

# What runs at the end gets so long to stop: a statement that is under way is called off at the server first.
STOP_SECONDS = 10.0


class Scope:
    """The calls of one operation that are under way."""

    def __init__(self) -> None:
        self.is_over = False
        self._calling: set[asyncio.Task[Any]] = set()

    @contextmanager
    def calling(self) -> Iterator[None]:
        """The running task asks a model or the database. Raises CancelledError if the operation is over."""
        if self.is_over:
            raise asyncio.CancelledError
        task = asyncio.current_task()
        if task is None or task in self._calling:
            yield
            return
        self._calling.add(task)
        task.add_done_callback(_look_at_result)
        try:
            yield
        finally:
            self._calling.discard(task)

    async def end(self) -> None:
        self.is_over = True
        calling = [task for task in self._calling if task is not asyncio.current_task()]
        for task in calling:
            task.cancel()
        if calling:
            await asyncio.wait(calling, timeout=STOP_SECONDS)


_scope: ContextVar[Scope | None] = ContextVar("engine_scope", default=None)


@asynccontextmanager
async def ended_with_block() -> AsyncIterator[None]:
    """Whatever tasks are started inside can ask nobody any more once the block is left."""
    scope = Scope()
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)
        await scope.end()


@contextmanager
def calling() -> Iterator[None]:
    """A call of a model or of the database that must not outlive its operation. Raises CancelledError after its end."""
    scope = _scope.get()
    if scope is None:
        yield
        return
    with scope.calling():
        yield


@contextmanager
def outliving() -> Iterator[None]:
    """What is done inside serves others too, so it may outlive the operation that happened to begin it."""
    token = _scope.set(None)
    try:
        yield
    finally:
        _scope.reset(token)


def _look_at_result(task: asyncio.Task[Any]) -> None:
    """Nobody else may: asyncio would log the error of a task that was left behind, with the provider's words."""
    if not task.cancelled():
        task.exception()
