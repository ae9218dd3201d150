"""Turns statements and values into the form that the driver takes as they are."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ClauseElement
from sqlalchemy.dialects.postgresql import asyncpg

_DIALECT = asyncpg.dialect()  # type: ignore[no-untyped-call]


def as_text(statement: ClauseElement) -> tuple[str, tuple[Any, ...]]:
    """SQL with $1, $2 … and the values for them, as asyncpg takes both."""
    compiled = statement.compile(dialect=_DIALECT)
    values = compiled.params
    processors = {
        name: bind.type.dialect_impl(_DIALECT).bind_processor(_DIALECT)
        for bind, name in compiled.bind_names.items()  # type: ignore[attr-defined]
    }
    arguments = []
    for name in compiled.positiontup:  # type: ignore[attr-defined]
        process = processors[name]
        arguments.append(values[name] if process is None else process(values[name]))
    return str(compiled), tuple(arguments)


def as_array(numbers: Iterable[int]) -> str:
    """The text of a Postgres array, to be sent as text and cast there."""
    return "{" + ",".join(map(str, numbers)) + "}"
