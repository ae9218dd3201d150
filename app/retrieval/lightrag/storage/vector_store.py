"""LightRAG's vector storage inside units of work. Searches and reads without a unit are LightRAG's own."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from lightrag.kg.postgres_impl import SQL_TEMPLATES, ClientManager, PGVectorStorage
from lightrag.kg.shared_storage import get_data_init_lock, get_namespace_lock
from lightrag.namespace import NameSpace

from app.retrieval.lightrag.storage.context import active_unit, outside_unit, writing_unit
from app.retrieval.lightrag.storage.guard import GuardedDatabase, refuse_in_unit
from app.retrieval.lightrag.storage.sql import bulk_upsert, template_columns
from app.retrieval.lightrag.storage.vector_overlay import Item, VectorTable

_TEMPLATES = {
    NameSpace.VECTOR_STORE_CHUNKS: "upsert_chunk",
    NameSpace.VECTOR_STORE_ENTITIES: "upsert_entity",
    NameSpace.VECTOR_STORE_RELATIONSHIPS: "upsert_relationship",
}


class ReadFailed(RuntimeError):
    """LightRAG's own read hid a database error behind an empty answer."""


class UnitVectorStorage(GuardedDatabase, PGVectorStorage):  # type: ignore[misc]
    """One namespace. Nothing is ever buffered here: a unit embeds and writes when it commits."""

    _flush_lock: Any

    async def initialize(self) -> None:
        """Take the process's pool; no statement, the tables come with the embedding profile."""
        async with get_data_init_lock():
            if self.db is None:
                self.db = await ClientManager.get_client("PGVectorStorage")
        if self._flush_lock is None:
            # LightRAG's reads outside a unit look into its (empty) buffer under this lock.
            self._flush_lock = get_namespace_lock(self.namespace, workspace=self.workspace)

    @cached_property
    def vector_table(self) -> VectorTable:
        """How this namespace is written."""
        template = SQL_TEMPLATES[_TEMPLATES[self.namespace]].format(table_name=self.table_name)
        arrange = {
            NameSpace.VECTOR_STORE_CHUNKS: self._upsert_chunks,
            NameSpace.VECTOR_STORE_ENTITIES: self._upsert_entities,
            NameSpace.VECTOR_STORE_RELATIONSHIPS: self._upsert_relationships,
        }[self.namespace]
        return VectorTable(self.table_name, bulk_upsert(template), template_columns(template), arrange)

    async def query(self, query: str, top_k: int, query_embedding: list[float] | None = None) -> list[Item]:
        refuse_in_unit(self.workspace, "a vector search")
        return list(await super().query(query, top_k, query_embedding))

    async def get_by_id(self, id: str) -> Item | None:
        return (await self.get_by_ids([id]))[0]

    async def get_by_ids(self, ids: list[str]) -> list[Item | None]:
        unit = active_unit(self.workspace)
        if unit is None:
            found = await self.read_items(list(ids))
            return [found.get(key) for key in ids]
        return await unit.vectors[self.namespace].get_many(list(ids))

    async def get_vectors_by_ids(self, ids: list[str]) -> dict[str, list[float]]:
        refuse_in_unit(self.workspace, "reading vectors")
        return dict(await super().get_vectors_by_ids(ids))

    async def upsert(self, data: Mapping[str, Item]) -> None:
        writing_unit(self.workspace).vectors[self.namespace].put(data)

    async def delete(self, ids: list[str]) -> None:
        writing_unit(self.workspace).vectors[self.namespace].remove(ids)

    async def delete_entity(self, entity_name: str) -> None:
        writing_unit(self.workspace).vectors[self.namespace].remove_entity(entity_name)

    async def delete_entity_relation(self, entity_name: str) -> None:
        writing_unit(self.workspace).vectors[self.namespace].remove_relations_of(entity_name)

    async def index_done_callback(self) -> None:
        """Nothing: a unit writes when it commits."""

    async def drop_pending_index_ops(self) -> None:
        """Nothing: a failed unit is thrown away whole."""

    async def drop(self) -> dict[str, str]:
        """Raises: a workspace is cleared by a unit of its own."""
        writing_unit(self.workspace)
        refuse_in_unit(self.workspace, "drop")
        return {}

    async def read_items(self, keys: list[str]) -> dict[str, Item]:
        """What the database holds under the ids, without the vectors. Raises `ReadFailed`."""
        if not keys:
            return {}
        rows = await outside_unit(lambda: super(UnitVectorStorage, self).get_by_ids(keys))
        if len(rows) != len(keys):
            raise ReadFailed("the engine's vectors could not be read")
        return {key: row for key, row in zip(keys, rows, strict=True) if row is not None}
