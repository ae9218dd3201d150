"""LightRAG's document statuses inside units of work. Reads without a unit are LightRAG's own."""

from collections.abc import Mapping, Sequence
from typing import Any

from lightrag.base import (
    CURSOR_END,
    CURSOR_START,
    CursorPosition,
    DocProcessingStatus,
    DocSchedulingRecord,
    DocStatus,
    DocStatusPage,
    SourceAbsent,
    SourceConflict,
    SourceUnique,
)
from lightrag.exceptions import StorageRecordNotFoundError
from lightrag.kg.postgres_impl import ClientManager, PGDocStatusStorage
from lightrag.kg.shared_storage import get_data_init_lock

from app.retrieval.lightrag.storage.context import NotInUnit, active_unit, writing_unit
from app.retrieval.lightrag.storage.doc_status_overlay import Row, decode_row
from app.retrieval.lightrag.storage.guard import GuardedDatabase, refuse_in_unit

UNKNOWN_SOURCE = "unknown_source"


class UnitDocStatusStorage(GuardedDatabase, PGDocStatusStorage):  # type: ignore[misc]
    """Inside a unit only documents in progress can be listed; others are looked up by id, file or content."""

    async def initialize(self) -> None:
        """Take the process's pool; no statement."""
        async with get_data_init_lock():
            if self.db is None:
                self.db = await ClientManager.get_client("PGVectorStorage")

    # --- Reads ---

    async def get_by_id(self, id: str) -> Row | None:
        unit = active_unit(self.workspace)
        if unit is None:
            return dict(found) if (found := await super().get_by_id(id)) else None
        row = await unit.documents.get(id)
        return None if row is None else self._as_read(row)

    async def get_by_id_strict(self, id: str) -> Row | None:
        return await self.get_by_id(id)

    async def get_by_ids(self, ids: list[str]) -> list[Row | None]:
        unit = active_unit(self.workspace)
        if unit is None:
            return list(await super().get_by_ids(ids))
        rows = await unit.documents.get_many(ids)
        return [self._as_read(rows[key]) if key in rows else None for key in ids]

    async def filter_keys(self, keys: set[str]) -> set[str]:
        unit = active_unit(self.workspace)
        if unit is None:
            return set(await super().filter_keys(keys))
        return set(keys) - (await unit.documents.get_many(keys)).keys()

    async def get_docs_by_ids(self, doc_ids: Sequence[str], *, strict: bool = False) -> dict[str, DocSchedulingRecord]:
        unit = active_unit(self.workspace)
        if unit is None:
            return dict(await super().get_docs_by_ids(doc_ids, strict=strict))
        rows = await unit.documents.get_many(doc_ids)
        return {key: self._pg_scheduling_record_from_row(row, strict=True) for key, row in rows.items()}

    async def get_full_docs_by_ids(
        self, doc_ids: Sequence[str], *, strict: bool = False
    ) -> dict[str, DocProcessingStatus]:
        unit = active_unit(self.workspace)
        if unit is None:
            return dict(await super().get_full_docs_by_ids(doc_ids, strict=strict))
        rows = await unit.documents.get_many(doc_ids)
        return {key: self._pg_doc_processing_status_from_row(row) for key, row in rows.items()}

    async def get_docs_by_statuses(
        self, statuses: list[DocStatus], strict: bool = False
    ) -> dict[str, DocProcessingStatus]:
        unit = active_unit(self.workspace)
        if unit is None:
            return dict(await super().get_docs_by_statuses(statuses, strict))
        rows = unit.documents.active(status.value for status in statuses)
        return {row["id"]: self._pg_doc_processing_status_from_row(row) for row in rows}

    async def get_docs_by_statuses_page(
        self,
        statuses: list[DocStatus],
        *,
        limit: int,
        position: CursorPosition = CURSOR_START,
        strict: bool = False,
    ) -> DocStatusPage:
        """Inside a unit one page holds all: a unit has few documents in progress."""
        unit = active_unit(self.workspace)
        if unit is None:
            return await super().get_docs_by_statuses_page(statuses, limit=limit, position=position, strict=strict)
        if position is not CURSOR_START:
            return DocStatusPage(docs={}, next_position=CURSOR_END)
        rows = unit.documents.active(status.value for status in statuses)
        if len(rows) > limit:
            raise NotInUnit("more documents in progress than one page holds")
        docs = {row["id"]: self._pg_scheduling_record_from_row(row, strict=True) for row in rows}
        return DocStatusPage(docs=docs, next_position=CURSOR_END)

    async def get_doc_by_content_hash(
        self, content_hash: str, *, exclude_doc_id: str | None = None
    ) -> tuple[str, Row] | None:
        unit = active_unit(self.workspace)
        if unit is None:
            found: tuple[str, Row] | None = await super().get_doc_by_content_hash(
                content_hash, exclude_doc_id=exclude_doc_id
            )
            return found
        rows = await unit.documents.find("content_hash", content_hash) if content_hash else []
        return self._first(row for row in rows if exclude_doc_id is None or not _concerns(row, exclude_doc_id))

    async def get_doc_by_file_basename(self, basename: str) -> tuple[str, Row] | None:
        unit = active_unit(self.workspace)
        if unit is None:
            found: tuple[str, Row] | None = await super().get_doc_by_file_basename(basename)
            return found
        return self._first(await self._primaries(basename))

    async def resolve_doc_source_strict(self, canonical_source_key: str) -> Any:
        unit = active_unit(self.workspace)
        if unit is None:
            return await super().resolve_doc_source_strict(canonical_source_key)
        rows = await self._primaries(canonical_source_key)
        if not rows:
            return SourceAbsent()
        if len(rows) == 1:
            return SourceUnique(doc_id=rows[0]["id"], doc=self._pg_scheduling_record_from_row(rows[0], strict=True))
        return SourceConflict(candidate_count=len(rows), sample_doc_ids=tuple(sorted(row["id"] for row in rows[:2])))

    async def is_empty(self) -> bool:
        refuse_in_unit(self.workspace, "is_empty")
        return bool(await super().is_empty())

    # --- Writes ---

    async def upsert(self, data: Mapping[str, Mapping[str, Any]]) -> None:
        await writing_unit(self.workspace).documents.put(data)

    async def update_doc_status_fields(
        self, doc_id: str, fields: Mapping[str, Any], *, missing_ok: bool = False
    ) -> None:
        """Raises LightRAG's `StorageRecordNotFoundError` if there is no such document."""
        is_found = await writing_unit(self.workspace).documents.update(doc_id, fields)
        if not is_found and not missing_ok:
            raise StorageRecordNotFoundError(doc_id)

    async def delete(self, ids: list[str]) -> None:
        writing_unit(self.workspace).documents.remove(ids)

    async def repair_source_conflict(self, *_: Any, **__: Any) -> Any:
        """Raises: it writes statements of its own."""
        writing_unit(self.workspace)
        refuse_in_unit(self.workspace, "repair_source_conflict")

    async def index_done_callback(self) -> None:
        """Nothing: a unit writes when it commits."""

    async def drop(self) -> dict[str, str]:
        """Raises: a workspace is cleared by a unit of its own."""
        writing_unit(self.workspace)
        refuse_in_unit(self.workspace, "drop")
        return {}

    # --- The table ---

    async def read_where(self, column: str, values: Sequence[str]) -> list[Row]:
        """The rows whose column has one of the values."""
        sql = f"SELECT * FROM LIGHTRAG_DOC_STATUS WHERE workspace=$1 AND {column} = ANY($2)"  # noqa: S608 - our constants
        rows = await self.db.query(sql, [self.workspace, list(values)], multirows=True)
        return [decode_row(row) for row in rows]

    async def _primaries(self, source: str) -> list[Row]:
        """The rows of a file that are documents and not marks of a refused duplicate."""
        if not source or source == UNKNOWN_SOURCE:
            return []
        rows = await writing_unit(self.workspace).documents.find("file_path", source)
        return [row for row in rows if not row["metadata"].get("is_duplicate")]

    def _first(self, rows: Any) -> tuple[str, Row] | None:
        row = next(iter(rows), None)
        return None if row is None else (row["id"], self._as_read(row))

    def _as_read(self, row: Row) -> Row:
        """In the shape that LightRAG's own reads have."""
        return {
            name: self._format_datetime_with_timezone(value) if name in ("created_at", "updated_at") else value
            for name, value in row.items()
            if name not in ("id", "workspace")
        }


def _concerns(row: Row, document_id: str) -> bool:
    """Whether the row is the document or marks a refused duplicate of it."""
    metadata = row["metadata"]
    is_mark = bool(metadata.get("is_duplicate")) and metadata.get("original_doc_id") == document_id
    return row["id"] == document_id or is_mark
