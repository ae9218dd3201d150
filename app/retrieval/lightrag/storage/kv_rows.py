"""The key-value tables as LightRAG reads and writes them: what it reads back of what it wrote, and what goes to SQL."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from lightrag.kg.postgres_impl import SQL_TEMPLATES, namespace_to_table_name
from lightrag.namespace import NameSpace

from app.retrieval.lightrag.storage.answer_keys import plain_key
from app.retrieval.lightrag.storage.context import NameTooLong

Row = dict[str, Any]

# What VARCHAR(512) holds; names of entities are keys of this width, and pairs of names joined by <SEP> are too.
MAX_KEY = 512
_DIGEST_BYTES = 32

# `full_docs` keeps what an earlier write said of these when a later one says nothing (LightRAG's COALESCE guards).
_KEPT_TEXTS = ("sidecar_location", "parse_format", "content_hash", "process_options", "parse_engine")


@dataclass(frozen=True)
class KvTable:
    """One namespace: its table, the template that writes it, and the JSON columns a reader gets as objects."""

    namespace: str
    template: str
    json_columns: tuple[str, ...]
    # The name of the row's key that fills a column, where they differ.
    renamed: Mapping[str, str] = field(default_factory=dict)
    has_long_keys: bool = False
    # Whether an upsert keeps columns of the row before, so that the row has to be read first.
    keeps_columns: bool = False

    @property
    def table(self) -> str:
        return str(namespace_to_table_name(self.namespace))

    @property
    def sql(self) -> str:
        return str(SQL_TEMPLATES[self.template])

    def stored_key(self, key: str) -> str:
        """The key as the table can hold it: itself, or its beginning with a digest where it is too long (facts F25).

        Only the tracking of a relation's chunks is kept under such a key. The names themselves stand whole in the graph
        and in the vector tables, so nobody sees a shortened one; LightRAG without these storages does not find the
        tracking row and falls back to the chunks that the edge itself names. Raises NameTooLong where a name is the key.
        """
        if len(key) <= MAX_KEY:
            return key
        if not self.has_long_keys:
            raise NameTooLong(f"a name has {len(key)} characters, {MAX_KEY} are possible", characters=len(key))
        digest = blake2b(key.encode(), digest_size=_DIGEST_BYTES).hexdigest()
        return f"{key[: MAX_KEY - len(digest) - 1]}#{digest}"

    def read_back(self, key: str, value: Mapping[str, Any], before: Row | None, moment: int) -> Row:
        """What LightRAG would read under `key` after writing `value` over `before`; `moment` is in epoch seconds."""
        row = copy_row(value) | {"id": key}
        if self.namespace == NameSpace.KV_STORE_FULL_DOCS:
            return _full_document(row, before)
        row["create_time"] = before["create_time"] if before else moment
        row["update_time"] = moment
        if self.namespace == NameSpace.KV_STORE_TEXT_CHUNKS:
            row["llm_cache_list"] = [plain_key(answer) for answer in row.get("llm_cache_list", [])]
            row["heading"] = row.get("heading") or {}
            row["sidecar"] = row.get("sidecar") or {}
        return row

    def columns(self, row: Row) -> Row:
        """The row by column name, JSON as text."""
        columns = {column: row.get(key) for column, key in self.renamed.items()} | row
        columns["id"] = self.stored_key(row["id"])
        for name in self.json_columns:
            columns[name] = json.dumps(columns[name])
        return columns


def _full_document(row: Row, before: Row | None) -> Row:
    old = before or {}
    kept = {name: row.get(name) or old.get(name) for name in _KEPT_TEXTS}
    if not before:
        # A first write stores an empty text as it is; only a later one is taken for "nothing said".
        kept = {name: row.get(name) for name in _KEPT_TEXTS}
    return {
        "id": row["id"],
        "content": row["content"],
        "file_path": row.get("file_path", ""),
        "chunk_options": row.get("chunk_options") or old.get("chunk_options") or {},
        **kept,
    }


def copy_row(row: Mapping[str, Any]) -> Row:
    """A copy whose lists and objects are copies too: LightRAG appends to what it reads."""
    return {
        key: list(value) if isinstance(value, list) else dict(value) if isinstance(value, dict) else value
        for key, value in row.items()
    }


KV_TABLES = {
    table.namespace: table
    for table in (
        KvTable(
            NameSpace.KV_STORE_FULL_DOCS,
            "upsert_doc_full",
            ("chunk_options",),
            {"doc_name": "file_path"},
            keeps_columns=True,
        ),
        KvTable(NameSpace.KV_STORE_TEXT_CHUNKS, "upsert_text_chunk", ("llm_cache_list", "heading", "sidecar")),
        KvTable(NameSpace.KV_STORE_FULL_ENTITIES, "upsert_full_entities", ("entity_names",)),
        KvTable(NameSpace.KV_STORE_FULL_RELATIONS, "upsert_full_relations", ("relation_pairs",)),
        KvTable(NameSpace.KV_STORE_ENTITY_CHUNKS, "upsert_entity_chunks", ("chunk_ids",)),
        KvTable(NameSpace.KV_STORE_RELATION_CHUNKS, "upsert_relation_chunks", ("chunk_ids",), has_long_keys=True),
    )
}
