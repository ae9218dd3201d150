"""What a unit has written to one vector table: texts until they are embedded, removals by id and by entity."""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lightrag.utils import compute_mdhash_id
from pgvector import Vector

from app.retrieval.contract import Statement
from app.retrieval.lightrag.storage.context import NameTooLong
from app.retrieval.lightrag.storage.kv_rows import MAX_KEY
from app.retrieval.lightrag.storage.sql import SEPARATOR, BulkUpsert, delete_by_id, value_bytes
from app.retrieval.lightrag.storage.weight import UnitWeight

Item = dict[str, Any]
FetchItems = Callable[[list[str]], Awaitable[Mapping[str, Item]]]
# LightRAG's own function that orders an item's values as its upsert template wants them.
Arrange = Callable[[Item, datetime], tuple[str, tuple[Any, ...]]]

_NAMES = ("entity_name", "src_id", "tgt_id")


@dataclass(frozen=True)
class VectorTable:
    """One vector table: its name, its bulk upsert and LightRAG's order of an item's values."""

    table: str
    upsert: BulkUpsert
    template_columns: tuple[str, ...]
    arrange: Arrange


class VectorOverlay:
    """Items are kept as LightRAG gave them; `vectors` holds what has been embedded, by text."""

    def __init__(self, table: VectorTable, fetch: FetchItems, weight: UnitWeight) -> None:
        self.table = table
        self._weight = weight
        self._base = weight.loader(fetch)
        self._written: dict[str, tuple[Item, int]] = {}
        self._removed: set[str] = set()
        self._removed_entities: set[str] = set()
        self._removed_relations_of: set[str] = set()

    def put(self, items: Mapping[str, Item]) -> None:
        moment = int(time.time())
        for key, item in items.items():
            for name in _NAMES:
                if len(item.get(name) or "") > MAX_KEY:
                    raise NameTooLong(f"a name is longer than {MAX_KEY} characters", characters=len(item[name]))
            self._weight.add(0 if key in self._written else 1, value_bytes(item))
            self._removed.discard(key)
            self._written[key] = (dict(item), moment)

    def remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._written.pop(key, None)
            self._removed.add(key)

    def remove_entity(self, name: str) -> None:
        """Every item of this entity, also one that an older LightRAG stored under another id."""
        self._removed_entities.add(name)
        self._drop_written(lambda item: item.get("entity_name") == name)
        self._written.pop(compute_mdhash_id(name, prefix="ent-"), None)

    def remove_relations_of(self, name: str) -> None:
        """Every item of a relation that has this entity at either end."""
        self._removed_relations_of.add(name)
        self._drop_written(lambda item: name in (item.get("src_id"), item.get("tgt_id")))

    async def get_many(self, keys: list[str]) -> list[Item | None]:
        """Items without their vectors, in the order of the keys."""
        await self._base.load(key for key in keys if key not in self._written and key not in self._removed)
        return [self._get(key) for key in keys]

    def texts(self) -> list[str]:
        """What has to be embedded before the commit."""
        return [item["content"] for item, _ in self._written.values()]

    def deletes(self, workspace: str) -> Iterator[Statement]:
        table = self.table.table
        if self._removed_entities:
            sql = f"DELETE FROM {table} WHERE workspace=$1 AND entity_name = ANY($2)"  # noqa: S608 - LightRAG's table
            yield Statement(sql, (workspace, sorted(self._removed_entities)))
        if self._removed_relations_of:
            sql = f"DELETE FROM {table} WHERE workspace=$1 AND (source_id = ANY($2) OR target_id = ANY($2))"  # noqa: S608
            yield Statement(sql, (workspace, sorted(self._removed_relations_of)))
        yield from delete_by_id(table, workspace, list(self._removed))

    def upserts(self, workspace: str, moment: datetime, vectors: Mapping[str, Any]) -> Iterator[Statement]:
        """Raises KeyError if a text has no vector."""
        rows = []
        for key in sorted(self._written):
            item, _ = self._written[key]
            _, values = self.table.arrange({**item, "__id__": key, "__vector__": vectors[item["content"]]}, moment)
            row = dict(zip(self.table.template_columns, values, strict=True))
            row["content_vector"] = Vector(row["content_vector"])
            if "chunk_ids" in row:
                row["chunk_ids"] = SEPARATOR.join(row["chunk_ids"])
            rows.append(row)
        return self.table.upsert.statements(workspace, rows, moment)

    def _get(self, key: str) -> Item | None:
        if key in self._written:
            item, moment = self._written[key]
            return {**item, "id": key, "created_at": moment}
        item_before = None if key in self._removed else self._base.known.get(key)
        if item_before is None or self._is_removed_by_name(item_before):
            return None
        return dict(item_before)

    def _is_removed_by_name(self, item: Item) -> bool:
        ends = (item.get("source_id"), item.get("target_id"))
        return item.get("entity_name") in self._removed_entities or not self._removed_relations_of.isdisjoint(ends)

    def _drop_written(self, condition: Callable[[Item], bool]) -> None:
        for key in [key for key, (item, _) in self._written.items() if condition(item)]:
            del self._written[key]
