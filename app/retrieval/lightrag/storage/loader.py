"""Reads rows of the database once per unit, and turns the point reads of one turn of the event loop into one statement.

LightRAG's merge asks for one node, edge or chunk list at a time, from many tasks at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Generic, TypeVar

from app.retrieval.lightrag.storage.context import outside_unit

K = TypeVar("K")
V = TypeVar("V")


class BatchLoader(Generic[K, V]):
    """What the database held under each key when the unit first asked; None where it held nothing.

    `fetch` gets distinct keys and returns those that it found. `on_load` is told how many keys were asked and what was
    found, so that the unit can weigh it; `on_error` hears of a failed read, which LightRAG may hide from the caller.
    """

    def __init__(
        self,
        fetch: Callable[[list[K]], Awaitable[Mapping[K, V]]],
        *,
        on_load: Callable[[int, Iterable[V]], None],
        on_error: Callable[[BaseException], None],
    ) -> None:
        self.known: dict[K, V | None] = {}
        self._fetch = fetch
        self._on_load = on_load
        self._on_error = on_error
        self._wanted: set[K] = set()
        self._batch: asyncio.Task[None] | None = None

    async def load(self, keys: Iterable[K]) -> None:
        """Afterwards `known` has every key."""
        missing = [key for key in keys if key not in self.known]
        if not missing:
            return
        self._wanted.update(missing)
        if self._batch is None:
            self._batch = asyncio.create_task(self._run())
            self._batch.add_done_callback(self._report)
        # Shielded: a reader that is cancelled must not take the others' rows with it.
        await asyncio.shield(self._batch)

    async def get(self, key: K) -> V | None:
        if key not in self.known:
            await self.load((key,))
        return self.known[key]

    async def _run(self) -> None:
        # The other point reads of this turn join before the statement is made.
        await asyncio.sleep(0)
        keys, self._wanted, self._batch = list(self._wanted), set(), None
        found = await outside_unit(lambda: self._fetch(keys))
        for key in keys:
            self.known.setdefault(key, found.get(key))
        self._on_load(len(keys), found.values())

    def _report(self, batch: asyncio.Task[None]) -> None:
        if not batch.cancelled() and (error := batch.exception()) is not None:
            self._on_error(error)
