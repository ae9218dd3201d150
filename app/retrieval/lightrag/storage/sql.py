"""Set-based statements made from LightRAG's own one-row templates, split so that none grows without bound.

Columns and conflict clauses come from `SQL_TEMPLATES`, so that an upgrade of LightRAG cannot drift away silently; only
`VALUES ($1, $2, …)` is replaced, by a SELECT from arrays.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.retrieval.contract import Statement

MAX_ROWS = 5000
MAX_BYTES = 16 * 1024 * 1024

Row = Mapping[str, Any]

# Arrays of these types are sent; a column that is not named here is text. The cast turns the element into the column.
_ARRAY_TYPES = {
    "tokens": "int4",
    "chunk_order_index": "int4",
    "content_length": "int4",
    "chunks_count": "int4",
    "count": "int4",
    "content_vector": "vector",
    "created_at": "timestamp",
    "updated_at": "timestamp",
}
_JSON_COLUMNS = frozenset(
    {
        "chunk_options",
        "llm_cache_list",
        "heading",
        "sidecar",
        "entity_names",
        "relation_pairs",
        "chunk_ids",
        "chunks_list",
        "metadata",
        "queryparam",
    }
)
_TIME_COLUMNS = frozenset({"create_time", "update_time"})

SEPARATOR = "<SEP>"

_TEMPLATE = re.compile(
    r"\s*INSERT\s+INTO\s+(?P<table>\w+)\s*\((?P<columns>[^)]*)\)\s*VALUES\s*\([^)]*\)\s*(?P<tail>ON\s+CONFLICT.*)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class BulkUpsert:
    """One upsert of many rows. Rows are keyed by column name; the workspace and the unit's time are the same for all."""

    sql: str
    columns: tuple[str, ...]
    has_time: bool

    def statements(self, workspace: str, rows: Sequence[Row], moment: datetime | None = None) -> Iterator[Statement]:
        """As many statements as the rows need, in the rows' order. Raises KeyError if a row lacks a column.

        `moment` (naive, UTC) is what a table with times of LightRAG's own needs.
        """
        for part in split(rows, _row_bytes):
            arrays = tuple([row[column] for row in part] for column in self.columns)
            yield Statement(self.sql, (workspace, *((moment,) if self.has_time else ()), *arrays))


def bulk_upsert(template: str) -> BulkUpsert:
    """The template as one statement for many rows. Raises ValueError if it does not look as it did in LightRAG 1.5.7."""
    match = _parse(template)
    names = template_columns(template)
    has_time = not _TIME_COLUMNS.isdisjoint(names)
    columns = tuple(name for name in names if name != "workspace" and name not in _TIME_COLUMNS)
    is_vector_table = "content_vector" in names
    first = 3 if has_time else 2
    arrays = ", ".join(f"${first + n}::{_ARRAY_TYPES.get(name, 'text')}[]" for n, name in enumerate(columns))
    sql = (
        f"INSERT INTO {match['table']} ({', '.join(names)})"  # noqa: S608 - names come from LightRAG's templates
        f" SELECT {', '.join(_value(name, is_vector_table=is_vector_table) for name in names)}"
        f" FROM unnest({arrays}) AS u({', '.join(columns)}) {match['tail']}"
    )
    return BulkUpsert(sql, columns, has_time)


def template_columns(template: str) -> tuple[str, ...]:
    """The columns of an upsert template, in the order of its values."""
    return tuple(name.strip().lower() for name in _parse(template)["columns"].split(","))


def _parse(template: str) -> re.Match[str]:
    match = _TEMPLATE.fullmatch(template)
    if match is None:
        raise ValueError("LightRAG's upsert template has another shape than expected")
    return match


def _value(column: str, *, is_vector_table: bool) -> str:
    if column == "workspace":
        return "$1"
    if column in _TIME_COLUMNS:
        return "$2::timestamp"
    if column == "chunk_ids" and is_vector_table:
        # Arrays of arrays cannot be unnested by row. An empty text stands for a list with one empty element, which is
        # what LightRAG stores, while string_to_array would make an empty list of it.
        return f"CASE WHEN u.chunk_ids = '' THEN ARRAY[''] ELSE string_to_array(u.chunk_ids, '{SEPARATOR}') END"
    if column in _JSON_COLUMNS:
        return f"u.{column}::jsonb"
    return f"u.{column}"


def delete_by_id(table: str, workspace: str, ids: Sequence[str]) -> Iterator[Statement]:
    """Delete rows of one workspace by id."""
    sql = f"DELETE FROM {table} WHERE workspace=$1 AND id = ANY($2)"  # noqa: S608 - LightRAG's table name
    for part in split(sorted(ids), len):
        yield Statement(sql, (workspace, list(part)))


def split(items: Sequence[Any], size_of: Callable[[Any], int]) -> Iterator[Sequence[Any]]:
    """Consecutive parts of at most `MAX_ROWS` items and about `MAX_BYTES` bytes; one larger item is a part of its own."""
    start, size = 0, 0
    for position, item in enumerate(items):
        item_size = size_of(item)
        if position > start and (position - start >= MAX_ROWS or size + item_size > MAX_BYTES):
            yield items[start:position]
            start, size = position, 0
        size += item_size
    if start < len(items):
        yield items[start:]


def _row_bytes(row: Row) -> int:
    return sum(value_bytes(value) for value in row.values())


def value_bytes(value: Any) -> int:
    """About how many bytes a value takes, in memory as on the wire."""
    # By the exact type first: this is asked of every value that a unit touches, most of them texts.
    kind = type(value)
    if kind is str:
        return len(value) if value.isascii() else len(value.encode())
    if value is None or kind is int or kind is float:
        return 16
    if isinstance(value, dict):
        return sum(map(value_bytes, value.values())) + 16 * len(value)
    if isinstance(value, list | tuple):
        return sum(map(value_bytes, value)) + 8 * len(value)
    if isinstance(value, str):
        return len(value.encode())
    dimension = getattr(value, "nbytes", None)
    return int(dimension) if dimension is not None else 16
