"""A session of its own beside the one that migrates."""

import asyncio
from typing import Any, Self

import asyncpg


class Asker:
    """Every call runs to its end."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._connection = self._runner.run(asyncpg.connect(url))

    def ask(self, method: str, statement: str) -> Any:
        return self._runner.run(getattr(self._connection, method)(statement))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()
