"""Types of request fields that several resources share, with the limits that keep what is stored sane."""

import json
import math
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from app.domain.workspaces.settings import Line, without_binary, without_control_characters

MAX_METADATA_BYTES = 16 * 1024
MAX_METADATA_DEPTH = 5

Name = Annotated[Line, Field(max_length=200)]
Title = Annotated[Line, Field(max_length=500)]
Filename = Annotated[Line, Field(max_length=1000)]
Ref = Annotated[Line, Field(max_length=200)]
# Part of a name to look for: as little as one space.
NamePart = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(without_control_characters)]


class Body(BaseModel):
    """A request body. Unknown fields are refused: a misspelt one would silently do nothing."""

    model_config = ConfigDict(extra="forbid")


Prose = Annotated[str, AfterValidator(without_binary)]


def storable_metadata(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """`value`, if it is small, flat enough, and made of text and finite numbers."""
    for leaf, depth in _leaves(value, 1):
        if depth > MAX_METADATA_DEPTH:
            raise ValueError(f"must not be nested deeper than {MAX_METADATA_DEPTH} levels")
        if isinstance(leaf, str):
            without_binary(leaf)
        elif isinstance(leaf, float) and not math.isfinite(leaf):
            raise ValueError("must not hold NaN or infinite numbers")
    if (size := len(json.dumps(value, ensure_ascii=False).encode())) > MAX_METADATA_BYTES:
        raise ValueError(f"must not be larger than {MAX_METADATA_BYTES} bytes as JSON; it has {size}")
    return value


def _leaves(value: JsonValue, depth: int) -> Iterator[tuple[JsonValue, int]]:
    """Every key and scalar of `value` with its depth; stops going down below the deepest level allowed."""
    if depth > MAX_METADATA_DEPTH + 1 or not isinstance(value, dict | list):
        yield value, depth - 1
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key, depth
            yield from _leaves(item, depth + 1)
    else:
        for item in value:
            yield from _leaves(item, depth + 1)


Metadata = Annotated[
    dict[str, JsonValue],
    AfterValidator(storable_metadata),
    Field(description="Anything of yours to find the document by.", examples=[{"department": "quality", "year": 2026}]),
]
