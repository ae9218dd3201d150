"""An answer as server-sent chunks, as OpenAI sends them."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pydantic_core import to_json
from starlette.requests import Request

from app.api.connected import in_background, while_serving
from app.api.openai_errors import openai_error
from app.api.problems import InternalError, problem_body, request_id_of, status_of
from app.domain.answering.service import Writing
from app.errors import AppError

Last = Callable[[], Awaitable[dict[str, Any]]]
DONE = b"data: [DONE]\n\n"


class Chunks:
    """Writes an answer in a task of its own, which ends with `frames`, and makes chunks of what it says."""

    def __init__(self, request: Request, writing: Writing, head: dict[str, Any]) -> None:
        self._request = request
        self._writing = writing
        self._head = {**head, "object": "chat.completion.chunk"}
        # Without a bound but the answer's own: a client that stops reading must not keep the model from others.
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()
        self._first: str | None = None
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Returns when the first piece is there. Raises what the chat model raises before: that can still be a status."""
        self._task = in_background(self._write())
        try:
            self._first = await self._pieces.get()
        except BaseException:
            self._task.cancel()
            raise
        if self._first is None:
            await self._task

    async def _write(self) -> None:
        try:
            await while_serving(self._request, self._writing.stream(self._pieces.put))
        except Exception:
            await self._pieces.put(None)
            raise
        await self._pieces.put(None)

    async def frames(self, last: Last, *, includes_usage: bool) -> AsyncIterator[bytes]:
        """Ends with the chunk that `last` adds to, or with an error in its place."""
        assert self._task is not None  # noqa: S101 - `begin` comes first
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            piece = self._first
            while piece is not None:
                yield self._chunk({"content": piece})
                piece = await self._pieces.get()
            await self._task
            added = await last()
            usage = added.pop("usage")
            if includes_usage:
                yield self._chunk({}, self._writing.finish_reason)
                yield _frame({**self._head, "choices": [], "usage": usage, **added})
            else:
                yield self._chunk({}, self._writing.finish_reason, added)
            yield DONE
        except AppError as error:
            # Half an answer is out: only the stream itself can still tell.
            yield _frame(self._error(error))
        except Exception:
            yield _frame(self._error(InternalError("Something went wrong on our side. Quote the request id.")))
            raise
        finally:
            self._task.cancel()

    def _chunk(
        self, delta: dict[str, Any], finish_reason: str | None = None, added: dict[str, Any] | None = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _frame({**self._head, "choices": [choice], **(added or {})})

    def _error(self, error: AppError) -> dict[str, Any]:
        status, request_id = status_of(type(error)), request_id_of(self._request)
        return openai_error(problem_body(status, error.reason, error.title, error.detail, request_id, error.facts))


def _frame(data: dict[str, Any]) -> bytes:
    return b"data: " + to_json(data) + b"\n\n"


def unix_time() -> int:
    return int(time.time())
