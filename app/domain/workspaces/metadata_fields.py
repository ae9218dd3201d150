"""Metadata fields of declared types: what values they take, in documents and in filters. Pure.

What a workspace does not declare may hold anything, and cannot be filtered by.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from app.errors import Invalid
from app.retrieval.filters import FieldType, Value

# A date, or a moment with its zone, as RFC 3339 writes them; other ISO 8601 forms are not told apart by everybody.
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)")

_EXPECTED: Mapping[FieldType, str] = {
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
    "date": "a date such as 2026-11-30, or a time such as 2026-11-30T13:00:00Z",
    "string_list": "a list of strings",
}


class MetadataMismatch(Invalid):
    """A value of a document's metadata is not of the type that the workspace declares for its field."""

    code = "metadata_type_mismatch"
    title = "The metadata do not have the declared types"


def check_metadata(declared: Mapping[str, FieldType], metadata: Mapping[str, Any]) -> None:
    """A declared field may be missing or null; what is not declared may hold anything. Raises MetadataMismatch."""
    for field, kind in declared.items():
        value = metadata.get(field)
        if value is not None and not _is_of(kind, value):
            raise MetadataMismatch(
                f"The field {field!r} of the metadata is declared as {kind}: {_EXPECTED[kind]}.",
                field=field,
                declared=kind,
            )


def _is_of(kind: FieldType, value: Any) -> bool:
    if kind == "string_list":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return comparable(kind, value) is not None


def comparable(kind: FieldType, value: Any) -> Value | None:
    """`value` as a field of `kind` is compared with it, for lists one of their strings; None if it is of another type."""
    if kind in ("string", "string_list"):
        return value if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "number":
        return _decimal(value)
    return _moment(value) if isinstance(value, str) else None


def expected(kind: FieldType) -> str:
    """What a filter compares such a field with, for people."""
    return _EXPECTED["string" if kind == "string_list" else kind]


def _decimal(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return repr(value) if math.isfinite(value) else None
    except OverflowError:  # an integer that no float comes near
        return None


def _moment(text: str) -> datetime | None:
    """A date is its first moment in UTC."""
    try:
        if _DATE.fullmatch(text):
            return datetime.combine(date.fromisoformat(text), time(), UTC)
        if _MOMENT.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    return None
