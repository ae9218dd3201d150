"""The filter of a query over HTTP."""

from typing import Annotated, Any, Literal, Self, get_args
from uuid import UUID

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StringConstraints, model_validator

from app.api.fields import Body, Prose
from app.api.v1.documents.filters import Moment
from app.domain.queries.filters import GivenFilter
from app.retrieval.filters import Operator

MAX_DOCUMENT_IDS = 1000
MAX_VALUES = 200

Text = Annotated[Prose, StringConstraints(strict=True, max_length=1000)]
Number = StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)]
Scalar = StrictBool | Number | Text
Ordered = Number | Text
MediaType = Annotated[str, Field(pattern=r"^[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+$", max_length=200)]
Language = Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}$", description="ISO 639-1; `und` where none was told.")]


class MetadataCondition(Body):
    """Comparisons of one field; all of them must hold."""

    eq: Scalar | None = None
    any_of: list[Scalar] | None = Field(default=None, alias="in", min_length=1, max_length=MAX_VALUES)
    gt: Ordered | None = None
    gte: Ordered | None = None
    lt: Ordered | None = None
    lte: Ordered | None = None
    exists: StrictBool | None = None

    @model_validator(mode="after")
    def _refuse_nothing(self) -> Self:
        if not self.given():
            raise ValueError("must hold at least one of eq, in, gt, gte, lt, lte, exists")
        return self

    def given(self) -> dict[Operator, Any]:
        found: dict[Operator, Any] = {}
        for operator in get_args(Operator):
            value = self.any_of if operator == "in" else getattr(self, operator)
            if value is not None:
                found[operator] = value
        return found


class FilterGiven(Body):
    """Only documents that meet all of it lend evidence, in every mode; what is left out does not narrow."""

    document_ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_DOCUMENT_IDS)] | None = Field(
        default=None, description="Any of these."
    )
    metadata: dict[Annotated[str, Field(max_length=200)], Scalar | MetadataCondition] | None = Field(
        default=None,
        min_length=1,
        max_length=50,
        description="By field that the workspace declares (`metadata_fields`): a value, or comparisons.",
        examples=[{"department": "quality", "year": {"gte": 2024, "lt": 2027}, "tags": {"in": ["seal", "valve"]}}],
    )
    media_types: Annotated[list[MediaType], Field(min_length=1, max_length=50)] | None = Field(
        default=None, description="Any of these, without parameters."
    )
    languages: Annotated[list[Language], Field(min_length=1, max_length=50)] | None = Field(
        default=None, description="Any of these."
    )
    uploaded_after: Moment | None = Field(default=None, description="Uploaded from this time on.")
    uploaded_before: Moment | None = Field(default=None, description="Uploaded before this time.")

    def question_filter(self) -> GivenFilter:
        equals: Literal["eq"] = "eq"
        return GivenFilter(
            document_ids=self.document_ids or (),
            metadata={
                name: value.given() if isinstance(value, MetadataCondition) else {equals: value}
                for name, value in (self.metadata or {}).items()
            },
            media_types=self.media_types or (),
            languages=self.languages or (),
            uploaded_after=self.uploaded_after,
            uploaded_before=self.uploaded_before,
        )
