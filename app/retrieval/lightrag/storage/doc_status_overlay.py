"""What a unit has written to the document statuses, with the look-ups that LightRAG's pipeline makes."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from lightrag.base import DocStatus
from lightrag.kg.postgres_impl import (
    _DOC_STATUS_DATETIME_COLUMNS,
    _DOC_STATUS_JSON_COLUMNS,
    _DOC_STATUS_UPDATABLE_COLUMNS,
    _parse_doc_status_datetime,
)

from app.retrieval.contract import Statement
from app.retrieval.lightrag.storage.context import NotInUnit, outside_unit
from app.retrieval.lightrag.storage.kv_rows import copy_row
from app.retrieval.lightrag.storage.sql import bulk_upsert, delete_by_id, value_bytes
from app.retrieval.lightrag.storage.weight import UnitWeight

Row = dict[str, Any]
# Rows whose column has one of the values.
FetchWhere = Callable[[str, Sequence[str]], Awaitable[list[Row]]]

TABLE = "LIGHTRAG_DOC_STATUS"

# LightRAG resumes documents in these states, whoever left them there (facts F2).
ACTIVE = frozenset(
    status.value for status in (DocStatus.PENDING, DocStatus.PARSING, DocStatus.ANALYZING, DocStatus.PROCESSING)
)

# LightRAG has no template for this one; a test finds it in the source of its `upsert`.
UPSERT = """insert into LIGHTRAG_DOC_STATUS(workspace,id,content_summary,content_length,chunks_count,status,file_path,chunks_list,track_id,metadata,error_msg,content_hash,created_at,updated_at)
                 values($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14)
                  on conflict(id,workspace) do update set
                  content_summary = EXCLUDED.content_summary,
                  content_length = EXCLUDED.content_length,
                  chunks_count = EXCLUDED.chunks_count,
                  status = EXCLUDED.status,
                  file_path = EXCLUDED.file_path,
                  chunks_list = EXCLUDED.chunks_list,
                  track_id = EXCLUDED.track_id,
                  metadata = EXCLUDED.metadata,
                  error_msg = EXCLUDED.error_msg,
                  content_hash = COALESCE(
                      NULLIF(EXCLUDED.content_hash, ''),
                      LIGHTRAG_DOC_STATUS.content_hash
                  ),
                  created_at = EXCLUDED.created_at,
                  updated_at = EXCLUDED.updated_at"""


class DocStatusOverlay:
    """Rows are kept by column, JSON as objects and times naive in UTC, as the table holds them."""

    def __init__(self, fetch: FetchWhere, weight: UnitWeight) -> None:
        self._fetch = fetch
        self._weight = weight
        self._base = weight.loader(self._fetch_ids)
        self._asked: set[tuple[str, str]] = set()
        self._written: dict[str, Row] = {}
        self._removed: set[str] = set()
        self._is_new = False

    def expect_new(self, document_id: str) -> None:
        """The database holds no row of the only document of this unit, by whatever column it is looked for."""
        self._base.known.setdefault(document_id, None)
        self._is_new = True

    async def get(self, document_id: str) -> Row | None:
        row = self._written.get(document_id)
        if row is None and document_id not in self._removed:
            row = await self._base.get(document_id)
        return None if row is None else copy_row(row)

    async def get_many(self, document_ids: Iterable[str]) -> dict[str, Row]:
        """The rows that exist, by id, in the order of the ids."""
        ids = list(document_ids)
        await self._base.load(ids)
        return {key: row for key in ids if (row := await self.get(key)) is not None}

    async def find(self, column: str, value: str) -> list[Row]:
        """The rows whose column has the value, oldest first."""
        if not self._is_new and (column, value) not in self._asked:
            for row in await outside_unit(lambda: self._fetch(column, [value])):
                self._base.known.setdefault(row["id"], row)
            self._asked.add((column, value))
        return [row for row in self._current() if row[column] == value]

    def active(self, statuses: Iterable[str]) -> list[Row]:
        """This unit's own documents in any of these states, oldest first; LightRAG takes up what it is told of here.

        Raises NotInUnit for states that documents in the database are in as well.
        """
        wanted = set(statuses)
        if not wanted <= ACTIVE:
            raise NotInUnit("inside a unit only documents in progress can be listed")
        return _by_age(row for row in self._written.values() if row["status"] in wanted)

    def written(self) -> list[Row]:
        """The rows this unit would write."""
        return [copy_row(row) for row in self._written.values()]

    async def put(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        for key, value in rows.items():
            before = await self.get(key)
            self._set(key, _row(key, value, before))

    async def update(self, document_id: str, fields: Mapping[str, Any]) -> bool:
        """Change some columns; False if there is no such row. Raises ValueError for columns that are not to be changed."""
        unknown = fields.keys() - _DOC_STATUS_UPDATABLE_COLUMNS
        if unknown:
            raise ValueError(f"columns that cannot be updated: {sorted(unknown)}")
        row = await self.get(document_id)
        if row is None:
            return False
        self._set(document_id, row | {name: _value(name, value) for name, value in fields.items()})
        return True

    def remove(self, document_ids: Iterable[str]) -> None:
        for key in document_ids:
            self._written.pop(key, None)
            self._removed.add(key)

    def deletes(self, workspace: str) -> Iterator[Statement]:
        return delete_by_id(TABLE, workspace, [key for key in self._removed if self._base.known.get(key, ...)])

    def upserts(self, workspace: str) -> Iterator[Statement]:
        rows = [
            row | {name: json.dumps(row[name]) for name in _DOC_STATUS_JSON_COLUMNS}
            for _, row in sorted(self._written.items())
        ]
        return bulk_upsert(UPSERT).statements(workspace, rows)

    async def _fetch_ids(self, ids: list[str]) -> dict[str, Row]:
        return {row["id"]: row for row in await self._fetch("id", ids)}

    def _set(self, key: str, row: Row) -> None:
        self._weight.add(0 if key in self._written else 1, value_bytes(row))
        self._written[key] = row

    def _current(self) -> list[Row]:
        base = {key: row for key, row in self._base.known.items() if row is not None and key not in self._removed}
        return _by_age((base | self._written).values())


def _by_age(rows: Iterable[Row]) -> list[Row]:
    """Copies, oldest first."""
    return sorted(map(copy_row, rows), key=lambda row: (row["created_at"] or datetime.min, row["id"]))  # noqa: DTZ901 - naive on purpose


def decode_row(row: Row) -> Row:
    """A row of the table with its JSON columns as objects."""
    return {name: json.loads(value) if name in _DOC_STATUS_JSON_COLUMNS else value for name, value in row.items()}


def _row(key: str, value: Mapping[str, Any], before: Row | None) -> Row:
    row = {
        "id": key,
        "content_summary": value["content_summary"],
        "content_length": value["content_length"],
        "chunks_count": value.get("chunks_count", -1),
        "status": value["status"],
        "file_path": value["file_path"],
        "chunks_list": value.get("chunks_list", []),
        "track_id": value.get("track_id"),
        "metadata": value.get("metadata", {}),
        "error_msg": value.get("error_msg"),
        # Written once and kept: later writes of the pipeline leave it out.
        "content_hash": value.get("content_hash") or (before["content_hash"] if before else value.get("content_hash")),
        "created_at": value.get("created_at"),
        "updated_at": value.get("updated_at"),
    }
    return {name: _value(name, field) for name, field in row.items()}


def _value(column: str, value: Any) -> Any:
    if column in _DOC_STATUS_DATETIME_COLUMNS:
        return _parse_doc_status_datetime(value)
    if column in _DOC_STATUS_JSON_COLUMNS:
        # Through JSON and back: a copy, in the types that a reader of the table gets.
        return json.loads(value if isinstance(value, str) else json.dumps(value))
    return value.value if isinstance(value, Enum) else value
