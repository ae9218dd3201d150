"""Faults for the storages: a statement of the commit that fails, and a proxy that loses the answer to COMMIT."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.retrieval.lightrag.storage import commit as commit_module


class Broken(Exception):
    """What a broken statement raises."""


def before_statement(monkeypatch: pytest.MonkeyPatch, fault: Callable[[int], Awaitable[None]]) -> list[int]:
    """Await `fault(number)` before each statement of a commit, from 0, the fence. The list gets the numbers."""
    run = commit_module.execute
    seen: list[int] = []

    async def execute(connection: Any, statement: Any) -> Any:
        seen.append(len(seen))
        await fault(seen[-1])
        return await run(connection, statement)

    monkeypatch.setattr(commit_module, "execute", execute)
    return seen


class LossyProxy:
    """Stands between client and server. `lose` says what happens to the next COMMIT, `messages_left` when all is cut.

    "answer": the server gets it, the client never hears; "request": the server never gets it; None: nothing.
    """

    def __init__(self) -> None:
        self.lose: str | None = None
        self.messages_left: int | None = None
        self.port = 0

    @asynccontextmanager
    async def serve(self, host: str, port: int) -> AsyncIterator["LossyProxy"]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            up_reader, up_writer = await asyncio.open_connection(host, port)
            down = asyncio.create_task(_pump(up_reader, writer))
            try:
                while data := await reader.read(65536):
                    if self.lose and b"COMMIT" in data:
                        await self._lose(data, up_writer, down)
                        break
                    if self._is_cut():
                        break
                    up_writer.write(data)
                    await up_writer.drain()
            except ConnectionError:
                pass
            finally:
                down.cancel()
                up_writer.close()
                writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    def _is_cut(self) -> bool:
        if self.messages_left is None:
            return False
        self.messages_left -= 1
        is_cut = self.messages_left < 0
        if is_cut:
            self.messages_left = None
        return is_cut

    async def _lose(self, data: bytes, up_writer: asyncio.StreamWriter, down: "asyncio.Task[None]") -> None:
        lose, self.lose = self.lose, None
        down.cancel()
        if lose == "answer":
            up_writer.write(data)
            await up_writer.drain()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        return
