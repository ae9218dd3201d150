"""The filters of the list of documents, as query parameters."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import AwareDatetime, TypeAdapter, ValidationError

from app.api.fields import Metadata, NamePart
from app.api.problems import validation_problem
from app.domain.documents.records import DocumentFilter, Status

_metadata: TypeAdapter[dict[str, Any]] = TypeAdapter(Metadata)


def document_filter(
    status: Annotated[list[Status], Query(description="Any of these.")] = [],  # noqa: B006 - FastAPI copies it
    created_after: Annotated[AwareDatetime | None, Query(description="From this time on.")] = None,
    created_before: Annotated[AwareDatetime | None, Query(description="Before this time.")] = None,
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
