"""What a query's evidence is narrowed to, before anything is ranked: value types only.

Conditions are typed by what the workspace declares of its metadata, so that a filter that cannot mean anything is refused
before an engine sees it. `app/retrieval/store/allowed.py` turns a filter into the versions it allows.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args
from uuid import UUID

# What a field of metadata may be declared as.
FieldType = Literal["string", "number", "boolean", "date", "string_list"]
FIELD_TYPES: Final[tuple[FieldType, ...]] = get_args(FieldType)

Operator = Literal["eq", "in", "gt", "gte", "lt", "lte", "exists"]
OPERATORS: Final[tuple[Operator, ...]] = get_args(Operator)

# Numbers as their decimal text, which Postgres reads exactly; dates as moments.
Value = str | bool | datetime


@dataclass(frozen=True)
class Condition:
    """One comparison of a metadata field. `values` holds one value, several for `in`; of `exists` whether it shall.

    A field of the type `string_list` equals a value that it holds.
    """

    field: str
    type: FieldType
    operator: Operator
    values: tuple[Value, ...]


@dataclass(frozen=True)
class EvidenceFilter:
    """Documents that evidence may come from: those that meet all that is given; None or empty does not narrow.

    `document_ids`, `media_types`, `languages` (ISO 639-1, or `und`) mean any of them. Media type and language are those
    of the version that answers, the time is the document's upload: from `uploaded_after` on and before `uploaded_before`.
    """

    document_ids: tuple[UUID, ...] = ()
    metadata: tuple[Condition, ...] = ()
    media_types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    uploaded_after: datetime | None = None
    uploaded_before: datetime | None = None


NO_FILTER: Final = EvidenceFilter()
