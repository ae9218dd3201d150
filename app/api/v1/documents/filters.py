"""The filters of the list of documents, as query parameters."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import AfterValidator, AwareDatetime, TypeAdapter, ValidationError

from app.api.fields import Metadata, NamePart
from app.api.problems import validation_problem
from app.domain.documents.records import DocumentFilter, Status

_metadata: TypeAdapter[dict[str, Any]] = TypeAdapter(Metadata)


def _in_utc(moment: datetime) -> datetime:
    """`moment` as the database is asked for it: the first and last hours of the calendar may have no name in UTC."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("must be a time between the years 1 and 9999 in UTC") from None


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]


async def document_filter(
    status: Annotated[list[Status], Query(description="Any of these.")] = [],  # noqa: B006 - FastAPI copies it
    created_after: Annotated[Moment | None, Query(description="From this time on.")] = None,
    created_before: Annotated[Moment | None, Query(description="Before this time.")] = None,
    title: Annotated[NamePart | None, Query(description="Part of the title.")] = None,
    filename: Annotated[NamePart | None, Query(description="Part of the file name.")] = None,
    metadata: Annotated[
        str | None,
        Query(
            max_length=4000,
            description="A JSON object; documents whose metadata hold all of it.",
            examples=['{"department": "quality"}'],
        ),
    ] = None,
) -> DocumentFilter:
    try:
        wanted = _metadata.validate_json(metadata) if metadata is not None else None
    except ValidationError as error:
        raise validation_problem(
            [{**item, "loc": ("query", "metadata", *item["loc"])} for item in error.errors()]
        ) from None
    return DocumentFilter(tuple(status), created_after, created_before, title, filename, wanted)
