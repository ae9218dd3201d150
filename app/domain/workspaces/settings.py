"""What a workspace may choose about its indexing, and the index profile that follows from it."""

import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from app.domain.workspaces.query_settings import QuerySettings
from app.retrieval.contract import IndexProfile
from app.retrieval.filters import FieldType


def without_control_characters(text: str) -> str:
    """`text`, if it is one line; a line break or a control character would change what a prompt or a context says."""
    for position, character in enumerate(text):
        if unicodedata.category(character) in ("Cc", "Zl", "Zp"):
            raise ValueError(f"must not hold control characters (U+{ord(character):04X} at position {position})")
    return text


Line = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(without_control_characters)
]

TEXT_CONTROLS = "\t\n\r"


def without_binary(text: str) -> str:
    """`text`, if it holds no control characters but line breaks and tabs; Postgres stores no U+0000 at all."""
    for position, character in enumerate(text):
        if unicodedata.category(character) == "Cc" and character not in TEXT_CONTROLS:
            raise ValueError(f"must not hold control characters (U+{ord(character):04X} at position {position})")
    return text


class EntityType(BaseModel):
    """A kind of thing to look for in the documents."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[Line, Field(max_length=60, examples=["Machine"])]
    description: Annotated[
        Line, Field(max_length=400, examples=["A machine or device on the shop floor, with its model number."])
    ]


class WorkspaceSettings(QuerySettings):
    """How documents of a workspace are cut, extracted and summarised, and how it is asked. Everything here has a default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    chunk_strategy: Literal["recursive", "fixed", "sentence", "semantic"] = Field(
        default="recursive", description="How passages are grouped into the chunks that the graph engine gets."
    )
    chunk_tokens: int = Field(default=1200, ge=200, le=4000, description="Size of a chunk at most, in tokens.")
    entity_types: tuple[EntityType, ...] = Field(
        default=(), max_length=40, description="What to look for; empty for the engine's general kinds."
    )
    extraction_language: Annotated[Line, Field(max_length=60)] = Field(
        default="the language of the text", description="The language of extracted descriptions."
    )
    gleaning: int = Field(default=0, ge=0, le=3, description="Further passes of extraction over each chunk.")
    extraction_examples: tuple[
        Annotated[str, Field(min_length=1, max_length=8000), AfterValidator(without_binary)], ...
    ] = Field(default=(), max_length=5, description="Worked examples for the extraction prompt.")
    max_source_ids: int = Field(
        default=200, ge=10, le=2000, description="Chunks remembered as the sources of one entity or relation."
    )
    summary_after_fragments: int = Field(
        default=8, ge=2, le=100, description="Descriptions of one entity that are joined before the model sums them up."
    )
    summary_max_tokens: int = Field(default=1200, ge=100, le=8000)
    partial_graphs: Literal["flag", "keep_out"] = Field(
        default="flag",
        description="What becomes of a graph that lacks chunks: indexed and flagged, or not indexed until it is whole.",
    )
    merge_duplicates_above: float | None = Field(
        default=None,
        ge=0.9,
        le=1,
        description="Entities that are alike by at least this score are merged by themselves; null: never.",
    )
    parse_timeout_seconds: float | None = Field(
        default=None, gt=0, le=3600, description="Time for reading one document; null: the installation's."
    )
    extract_timeout_seconds: float | None = Field(
        default=None,
        gt=0,
        le=24 * 3600,
        description="Time for the extraction of one document; null: the installation's.",
    )
    merge_timeout_seconds: float | None = Field(
        default=None, gt=0, le=6 * 3600, description="Time for merging one document; null: the installation's."
    )

    metadata_fields: dict[Annotated[Line, Field(max_length=200)], FieldType] = Field(
        default={}, max_length=100, description="The metadata that queries may be filtered by: the type of each field."
    )

    @classmethod
    def stored(cls, kept: Mapping[str, Any]) -> Self:
        """As a row has them. In a rolling upgrade a newer release may have written fields that this one does not know."""
        return cls.model_validate({name: value for name, value in kept.items() if name in cls.model_fields})

    @model_validator(mode="after")
    def _refuse_equal_types(self) -> Self:
        names = [kind.name.casefold() for kind in self.entity_types]
        if len(set(names)) < len(names):
            raise ValueError("entity_types must have different names")
        return self

    def index_profile(self, *, embedding: str, chat: str) -> IndexProfile:
        """The profile of versions indexed under these settings with these models ("" where no chat model is used)."""
        return IndexProfile(
            chunk_strategy=self.chunk_strategy,
            chunk_tokens=self.chunk_tokens,
            entity_types=tuple((kind.name, kind.description) for kind in self.entity_types),
            extraction_language=self.extraction_language,
            gleaning=self.gleaning,
            extraction_examples=self.extraction_examples,
            max_source_ids=self.max_source_ids,
            summary_after_fragments=self.summary_after_fragments,
            summary_max_tokens=self.summary_max_tokens,
            embedding=embedding,
            chat=chat,
        )
