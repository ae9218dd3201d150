"""LightRAG's key-value storage inside units of work. Reads without a unit are LightRAG's own."""

from collections.abc import Mapping
from typing import Any

from lightrag.kg.postgres_impl import ClientManager, PGKVStorage
from lightrag.kg.shared_storage import get_data_init_lock
from lightrag.namespace import NameSpace

from app.retrieval.lightrag.storage.answer_keys import answer_for
from app.retrieval.lightrag.storage.context import active_unit, writing_unit
from app.retrieval.lightrag.storage.extraction_cache import ExtractionCache
from app.retrieval.lightrag.storage.guard import GuardedDatabase, refuse_in_unit
from app.retrieval.lightrag.storage.kv_rows import KV_TABLES, MAX_KEY, KvTable, Row


class UnitKvStore(GuardedDatabase, PGKVStorage):  # type: ignore[misc]
    """One namespace. `full_entities` and `full_relations` name all that an operation will ask for, so they read ahead."""

    @property
    def table(self) -> KvTable:
        return KV_TABLES[self.namespace]

    async def initialize(self) -> None:
        """Take the process's pool; no statement."""
        async with get_data_init_lock():
            if self.db is None:
                self.db = await ClientManager.get_client("PGVectorStorage")

    async def get_by_id(self, id: str) -> Row | None:
        unit = active_unit(self.workspace)
        if unit is None:
            return (await self.read_rows([id])).get(id)
        row = await unit.kv[self.namespace].get(id)
        if row is not None:
            await unit.read_ahead(self.namespace, row)
        return row

    async def get_by_id_strict(self, id: str) -> Row | None:
        return await self.get_by_id(id)

    async def get_by_ids(self, ids: list[str]) -> list[Row | None]:
        unit = active_unit(self.workspace)
        if unit is None:
            rows = await self.read_rows(list(ids))
            return [rows.get(key) for key in ids]
        found = await unit.kv[self.namespace].get_many(list(ids))
        if self.namespace == NameSpace.KV_STORE_TEXT_CHUNKS:
            _ask_for_answers_by_chunk(found)
        return found

    async def filter_keys(self, keys: set[str]) -> set[str]:
        """The keys that have no row."""
        wanted = list(keys)
        return {key for key, row in zip(wanted, await self.get_by_ids(wanted), strict=True) if row is None}

    async def upsert(self, data: Mapping[str, Mapping[str, Any]]) -> None:
        unit = writing_unit(self.workspace)
        for row in data.values():
            await unit.read_ahead(self.namespace, row)
        await unit.kv[self.namespace].put(data)

    async def delete(self, ids: list[str]) -> None:
        writing_unit(self.workspace).kv[self.namespace].remove(ids)

    async def is_empty(self) -> bool:
        refuse_in_unit(self.workspace, "is_empty")
        return bool(await super().is_empty())

    async def index_done_callback(self) -> None:
        """Nothing: a unit writes when it commits."""

    async def drop(self) -> dict[str, str]:
        """Raises: a workspace is cleared by a unit of its own."""
        writing_unit(self.workspace)
        refuse_in_unit(self.workspace, "drop")
        return {}

    async def read_rows(self, keys: list[str]) -> dict[str, Row]:
        """What the database holds under the keys, read and decoded by LightRAG's own code."""
        table = self.table
        stored = {key: table.stored_key(key) for key in keys if table.has_long_keys or len(key) <= MAX_KEY}
        rows = await super().get_by_ids(list(stored.values())) if stored else []
        return {key: row | {"id": key} for key, row in zip(stored, rows, strict=True) if row is not None}


def _ask_for_answers_by_chunk(rows: list[Row | None]) -> None:
    for row in rows:
        if row is not None:
            row["llm_cache_list"] = [answer_for(key, row["id"]) for key in row["llm_cache_list"]]


def UnitKVStorage(**arguments: Any) -> PGKVStorage:
    """The storage of a namespace: the extraction cache has rules of its own."""
    is_cache = arguments["namespace"] == NameSpace.KV_STORE_LLM_RESPONSE_CACHE
    return ExtractionCache(**arguments) if is_cache else UnitKvStore(**arguments)
