"""Where statements that only read are sent, the pool or one connection of it, and how several are asked at once."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, TypeVar, overload

from app.db.counting import note_statement

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Reads(Protocol):
    async def fetch(self, statement: str, *arguments: Any) -> Sequence[Any]:
        """Rows of one statement inside the workspace's fence."""
        ...


class OneConnection:
    """`Reads` of one connection, which runs one statement at a time."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()

    async def fetch(self, statement: str, *arguments: Any) -> Sequence[Any]:
        async with self._turn:
            return await self._fetch(statement, *arguments)

    async def _fetch(self, statement: str, *arguments: Any) -> Sequence[Any]:
        note_statement()
        rows: Sequence[Any] = await self._connection.fetch(statement, *arguments)
        return rows


@overload
async def together(first: Awaitable[A], second: Awaitable[B], /) -> tuple[A, B]: ...
@overload
async def together(first: Awaitable[A], second: Awaitable[B], third: Awaitable[C], /) -> tuple[A, B, C]: ...
async def together(*work: Awaitable[Any]) -> tuple[Any, ...]:
    """The results of all. When one fails the others are called off and have ended before the error goes on: none still
    uses a connection that its caller gives back."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return tuple(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
