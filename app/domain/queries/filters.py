"""Reads a filter as it was asked for into one of declared types, so that a misspelt field is an error and not no result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from app.domain.workspaces.metadata_fields import comparable, expected
from app.errors import Invalid
from app.retrieval.filters import Condition, EvidenceFilter, FieldType, Operator, Value

_RANGES: Final[frozenset[Operator]] = frozenset(("gt", "gte", "lt", "lte"))
_ORDERED: Final[frozenset[FieldType]] = frozenset(("number", "date"))


class FieldNotDeclared(Invalid):
    """The workspace declares no metadata field of this name, so a filter cannot know what its values are."""

    code = "filter_field_unknown"
    title = "The workspace declares no such metadata field"


class FilterMismatch(Invalid):
    """A filter compares a metadata field with a value of another type, or in a way that its type does not have."""

    code = "filter_type_mismatch"
    title = "The filter does not fit the field's type"


@dataclass(frozen=True)
class GivenFilter:
    """A filter before its metadata are compared with what the workspace declares: operators and values by field."""

    document_ids: Sequence[UUID] = ()
    metadata: Mapping[str, Mapping[Operator, Any]] = field(default_factory=dict)
    media_types: Sequence[str] = ()
    languages: Sequence[str] = ()
    uploaded_after: datetime | None = None
    uploaded_before: datetime | None = None

    def typed(self, declared: Mapping[str, FieldType]) -> EvidenceFilter:
        """In a fixed order, so that equal filters are one in a cache. Raises FieldNotDeclared or FilterMismatch."""
        return EvidenceFilter(
            document_ids=tuple(sorted(set(self.document_ids))),
            metadata=tuple(_conditions(self.metadata, declared)),
            media_types=tuple(sorted({name.lower() for name in self.media_types})),
            languages=tuple(sorted({name.lower() for name in self.languages})),
            uploaded_after=self.uploaded_after,
            uploaded_before=self.uploaded_before,
        )


NOT_FILTERED: Final = GivenFilter()


def _conditions(
    metadata: Mapping[str, Mapping[Operator, Any]], declared: Mapping[str, FieldType]
) -> Iterator[Condition]:
    for name, comparisons in sorted(metadata.items()):
        kind = declared.get(name)
        if kind is None:
            raise FieldNotDeclared(
                f"The workspace declares no metadata field {name!r}; see its setting metadata_fields.",
                field=name,
                declared=sorted(declared),
            )
        for operator, value in sorted(comparisons.items()):
            if operator in _RANGES and kind not in _ORDERED:
                raise FilterMismatch(
                    f"The field {name!r} is a {kind}, which has no order: `{operator}` is for numbers and dates.",
                    field=name,
                    declared=kind,
                    operator=operator,
                )
            yield Condition(name, kind, operator, _values(name, kind, operator, value))


def _values(name: str, kind: FieldType, operator: Operator, value: Any) -> tuple[Value, ...]:
    if operator == "exists":
        return (bool(value),)
    given = value if operator == "in" else [value]
    values = [comparable(kind, item) for item in given]
    if None in values:
        raise FilterMismatch(
            f"The field {name!r} is a {kind}: compare it with {expected(kind)}.",
            field=name,
            declared=kind,
            operator=operator,
        )
    return tuple(sorted((item for item in values if item is not None), key=str))
