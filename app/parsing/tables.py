"""Renders table rows as text blocks small enough for one passage, with the header repeated in each."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from app.parsing.builder import SourceBuilder
from app.parsing.cleaning import one_line

# Tokens are estimated, not counted: loading the tokenizer would make the child's start six times as long.
# A passage holds a table of 400 tokens whole; the rest is room for the error of the estimate.
_BLOCK_TOKENS: Final = 260.0
_HEADER_TOKENS: Final = 70.0
_DIGIT: Final = re.compile(r"\d")
_MARK: Final = re.compile(r"[^\w\s]")
_WIDE: Final = re.compile(r"[\u2e80-\uffff]")
_ROW_SEPARATOR: Final = " | "
_SPARSE: Final = 20


def add_table(out: SourceBuilder, rows: Iterable[Sequence[str]], page: int | None = None) -> int:
    """Adds table blocks for `rows`, of which the first is the header; returns the number of rows added.

    A small table is one block of `a | b | c` lines. A larger one is several, each starting with the
    header; under a very wide header each row is written as `name: value` lines instead.
    """
    cleaned = (row for row in ([one_line(cell) if cell else "" for cell in row] for row in rows) if any(row))
    header = next(cleaned, None)
    if header is None:
        return 0
    head_line = _line(header)
    count = 1
    if _estimated_tokens(head_line) > _HEADER_TOKENS:
        for row in cleaned:
            count += 1
            out.block("table", _record(header, row), page)
        if count == 1:
            out.block("table", head_line, page)
        return count
    for lines in _groups(head_line, cleaned):
        out.block("table", "\n".join([head_line, *lines]), page)
        count += len(lines)
    return count


def _groups(head_line: str, rows: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Lines for each block; one empty group where there are no rows, so that the header is kept."""
    lines: list[str] = []
    tokens = start = _estimated_tokens(head_line)
    has_any = False
    for row in rows:
        line = _line(row)
        size = _estimated_tokens(line)
        if lines and tokens + size > _BLOCK_TOKENS:
            yield lines
            lines, tokens = [], start
        lines.append(line)
        tokens += size
        has_any = True
    if lines or not has_any:
        yield lines


def _line(cells: Sequence[str]) -> str:
    """Cells with their empty places kept, except in rows that are little but empty places."""
    filled = [cell for cell in cells if cell]
    if len(cells) > _SPARSE * len(filled):
        return _ROW_SEPARATOR.join(filled)
    last = len(cells)
    while last and not cells[last - 1]:
        last -= 1
    return _ROW_SEPARATOR.join(cells[:last])


def _record(header: Sequence[str], row: Sequence[str]) -> str:
    names = [*header, *("" for _ in range(len(row) - len(header)))]
    return "\n".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=False) if cell)


def _estimated_tokens(text: str) -> float:
    """About the tokens of o200k: four Latin letters each, two digits, one mark or Chinese character."""
    letters = len(text) if text.isascii() else 1.6 * len(text) + 2 * len(_WIDE.findall(text))
    return 0.25 * letters + 0.35 * len(_DIGIT.findall(text)) + 0.7 * len(_MARK.findall(text))
