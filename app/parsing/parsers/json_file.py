"""JSON and JSON lines: `path: value` lines, one block for each record."""

import json
from collections.abc import Iterator
from typing import Any

from app.parsing.builder import SourceBuilder
from app.parsing.cleaning import one_line
from app.parsing.encoding import decode_text
from app.parsing.errors import ParseFailed
from app.parsing.job import ParseJob


def parse(job: ParseJob, out: SourceBuilder) -> None:
    text = decode_text(job.path.read_bytes(), job.charset)
    if not text.strip():
        return
    for prefix, record in _records(_load(text)):
        lines = "\n".join(_lines(prefix, record))
        if lines:
            out.block("list", lines)


def _load(text: str) -> Any:
    """One JSON value, or the list of values of a JSON lines file; numbers stay as they are written."""
    try:
        return _decode(text)
    except json.JSONDecodeError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or error.msg != "Extra data":
            raise _broken(error) from None
    try:
        return [_decode(line) for line in lines]
    except json.JSONDecodeError as error:
        raise _broken(error) from None


def _decode(text: str) -> Any:
    return json.loads(text, parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_Members)


class _Members(list[tuple[str, Any]]):
    """An object's members in order; a key that stands twice is kept twice."""


def _records(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts that get a block each, with their paths: list items, and members of the outermost object."""
    if isinstance(value, _Members):
        plain = _Members((key, item) for key, item in value if not isinstance(item, list))
        if plain:
            yield "", plain
        for key, item in value:
            if isinstance(item, _Members):
                yield key, item
            elif isinstance(item, list):
                yield from ((f"{key}{place}", part) for place, part in _items(item))
    elif isinstance(value, list):
        # Records of one kind: their number in the file says nothing and would stand on every line.
        yield from (("", part) for _, part in _items(value))
    else:
        yield "", value


def _items(items: list[Any]) -> Iterator[tuple[str, Any]]:
    """Each item of a list of containers by itself, a list of plain values as a whole."""
    if any(isinstance(item, list) for item in items):
        yield from ((f"[{index}]", item) for index, item in enumerate(items))
    elif items:
        yield "", items


def _lines(prefix: str, value: Any) -> Iterator[str]:
    """`path: value` for each leaf, without recursion: nesting is the sender's choice."""
    stack: list[tuple[str, Any]] = [(prefix, value)]
    while stack:
        path, current = stack.pop()
        if isinstance(current, _Members):
            stack.extend((f"{path}.{key}" if path else key, item) for key, item in reversed(current))
        elif isinstance(current, list):
            stack.extend((f"{path}[{index}]", item) for index, item in reversed(list(enumerate(current))))
        elif current is not None and str(current).strip():
            shown = str(current).lower() if isinstance(current, bool) else one_line(str(current))
            yield f"{path}: {shown}" if path else shown


def _broken(error: json.JSONDecodeError) -> ParseFailed:
    return ParseFailed(
        "broken_document",
        f"The file is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
        line=error.lineno,
        column=error.colno,
    )
