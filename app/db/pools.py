"""Pools of connections that tell how they are used: SQLAlchemy's for our own tables, asyncpg's for the engine's."""

from time import perf_counter
from typing import Any

import asyncpg
from asyncpg.connection import Connection
from asyncpg.protocol import Record
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry

from app.metrics import note_pool

APP = "app"
ENGINE = "engine"


class AppPool(AsyncAdaptedQueuePool):
    def _do_get(self) -> ConnectionPoolEntry:
        started = perf_counter()
        entry = super()._do_get()
        note_pool(APP, used=self.checkedout(), size=self.size(), waited_seconds=perf_counter() - started)
        return entry

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        super()._do_return_conn(record)
        note_pool(APP, used=self.checkedout(), size=self.size())


class EnginePool(asyncpg.Pool):  # type: ignore[misc]
    def __init__(self, url: str, *, max_size: int, **options: Any) -> None:
        # What asyncpg.create_pool would add.
        defaults = {
            "min_size": 0, "max_queries": 50_000, "max_inactive_connection_lifetime": 300.0, "loop": None,
            "connection_class": Connection, "record_class": Record,
        }  # fmt: skip
        super().__init__(url, max_size=max_size, **{**defaults, **options})

    async def _acquire(self, timeout: float | None) -> Any:
        started = perf_counter()
        connection = await super()._acquire(timeout)
        self._note(perf_counter() - started)
        return connection

    async def release(self, connection: Any, *, timeout: float | None = None) -> None:
        try:
            await super().release(connection, timeout=timeout)
        finally:
            self._note(None)

    def _note(self, waited_seconds: float | None) -> None:
        used = self.get_size() - self.get_idle_size()
        note_pool(ENGINE, used=used, size=self.get_max_size(), waited_seconds=waited_seconds)
