"""Cursor pagination: a page and an opaque cursor. A cursor holds sort keys only, every query filters by tenant anew."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar
from uuid import UUID

from fastapi import Query
from pydantic import BaseModel, Field, TypeAdapter

from app.api.fields import Prose
from app.errors import Invalid

Item = TypeVar("Item")

# Only what Postgres can compare with: no U+0000, no half of a surrogate pair.
_keys: TypeAdapter[list[str]] = TypeAdapter(list[Prose])

MAX_DIGITS = 18  # of a bigint, with room

Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
Cursor = Annotated[
    str | None, Query(max_length=2000, description="`next_cursor` of the page before; with the same filters.")
]


class InvalidCursor(Invalid):
    """The cursor is not one that this list gave out."""

    code = "invalid_cursor"
    title = "The cursor is not valid"


class Page(BaseModel, Generic[Item]):
    """Part of a list. `next_cursor` is null on the last page."""

    items: list[Item]
    next_cursor: str | None = Field(description="Send it as `cursor` to get the next page.")


def encode_cursor(*keys: str) -> str:
    return urlsafe_b64encode(json.dumps(keys, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, keys: int) -> tuple[str, ...]:
    """The sort keys in `cursor`; raises InvalidCursor unless there are `keys` of them."""
    try:
        found = _keys.validate_json(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:
        found = []
    if len(found) != keys:
        raise _invalid()
    return tuple(found)


def encode_position(created_at: datetime, row_id: UUID) -> str:
    return encode_cursor(created_at.isoformat(), str(row_id))


def decode_position(cursor: str | None) -> tuple[datetime, UUID] | None:
    """Where a list in order of creation goes on; raises InvalidCursor."""
    if cursor is None:
        return None
    created_at, row_id = decode_cursor(cursor, 2)
    try:
        return datetime.fromisoformat(created_at).astimezone(UTC), UUID(row_id)
    except (ValueError, OverflowError):
        raise _invalid() from None


def decode_number(cursor: str | None) -> int | None:
    """Where a list in order of a number goes on; raises InvalidCursor."""
    if cursor is None:
        return None
    [number] = decode_cursor(cursor, 1)
    if not number.isdecimal() or len(number) > MAX_DIGITS:
        raise _invalid()
    return int(number)


def _invalid() -> InvalidCursor:
    return InvalidCursor("Use `next_cursor` of an earlier answer as it is.")
