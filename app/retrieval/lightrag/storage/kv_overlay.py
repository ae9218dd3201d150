"""What a unit has written to one key-value table, over what is in Postgres."""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from app.retrieval.contract import Statement
from app.retrieval.lightrag.storage.kv_rows import KvTable, Row, copy_row
from app.retrieval.lightrag.storage.loader import BatchLoader
from app.retrieval.lightrag.storage.sql import bulk_upsert, delete_by_id, value_bytes
from app.retrieval.lightrag.storage.weight import UnitWeight

FetchRows = Callable[[list[str]], Awaitable[Mapping[str, Row]]]


class KvOverlay:
    """Rows are kept in the shape in which LightRAG reads them; every row handed out is a copy."""

    def __init__(self, table: KvTable, fetch: FetchRows, weight: UnitWeight) -> None:
        self.table = table
        self._weight = weight
        self._base: BatchLoader[str, Row] = weight.loader(fetch)
        self._written: dict[str, Row] = {}
        self._removed: set[str] = set()

    async def load(self, keys: Iterable[str]) -> None:
        """Read ahead what will be asked for one by one."""
        await self._base.load(keys)

    def expect_new(self, key: str) -> None:
        """The database holds nothing under this key."""
        self._base.known.setdefault(key, None)

    async def get(self, key: str) -> Row | None:
        row = self._written.get(key)
        if row is None and key not in self._removed:
            row = await self._base.get(key)
        return None if row is None else copy_row(row)

    async def get_many(self, keys: list[str]) -> list[Row | None]:
        """One row a key, in the order of the keys."""
        await self._base.load(key for key in keys if key not in self._written and key not in self._removed)
        return [await self.get(key) for key in keys]

    async def put(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        """Write over what is there, by the rules of LightRAG's own upsert."""
        moment = int(time.time())
        for key, value in rows.items():
            self.table.stored_key(key)  # Refuses a key that no commit could write.
            row = self.table.read_back(key, value, await self._before(key), moment)
            self._weight.add(0 if key in self._written else 1, value_bytes(row))
            self._written[key] = row

    async def _before(self, key: str) -> Row | None:
        if key in self._written or key in self._removed:
            return self._written.get(key)
        return await self._base.get(key) if self.table.keeps_columns else self._base.known.get(key)

    def remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._written.pop(key, None)
            self._removed.add(key)

    def deletes(self, workspace: str) -> Iterator[Statement]:
        gone = [self.table.stored_key(key) for key in self._removed if self._base.known.get(key, ...) is not None]
        return delete_by_id(self.table.table, workspace, gone)

    def upserts(self, workspace: str, moment: datetime) -> Iterator[Statement]:
        rows = [self.table.columns(self._written[key]) for key in sorted(self._written)]
        return bulk_upsert(self.table.sql).statements(workspace, rows, moment)
