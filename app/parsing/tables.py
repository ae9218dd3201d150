"""Renders table rows as text blocks small enough for one passage, with the header repeated in each."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from app.parsing.builder import SourceBuilder
from app.parsing.cleaning import one_line

# Characters are measured, not tokens: the tokenizer would double the child's start. About 350 tokens of
# English, so that a passage can hold a block whole; wide characters count threefold.
_BLOCK_WIDTH: Final = 1100
_WIDEST_HEADER: Final = 300
_ROW_SEPARATOR: Final = " | "


def add_table(out: SourceBuilder, rows: Iterable[Sequence[str]], page: int | None = None) -> int:
    """Adds table blocks for `rows`, of which the first is the header; returns the number of rows added.

    A small table is one block of `a | b | c` lines. A larger one is several, each starting with the
    header; under a very wide header each row is written as `name: value` lines instead.
    """
    cleaned = (row for row in ([one_line(cell) for cell in row] for row in rows) if any(row))
    header = next(cleaned, None)
    if header is None:
        return 0
    head_line = _line(header)
    count = 1
    if _width(head_line) > _WIDEST_HEADER:
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
    width = start = _width(head_line)
    has_any = False
    for row in rows:
        line = _line(row)
        if lines and width + _width(line) > _BLOCK_WIDTH:
            yield lines
            lines, width = [], start
        lines.append(line)
        width += _width(line)
        has_any = True
    if lines or not has_any:
        yield lines


def _line(cells: Sequence[str]) -> str:
    filled = len(cells)
    while filled and not cells[filled - 1]:
        filled -= 1
    return _ROW_SEPARATOR.join(cells[:filled])


def _record(header: Sequence[str], row: Sequence[str]) -> str:
    names = [*header, *("" for _ in range(len(row) - len(header)))]
    return "\n".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=False) if cell)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(1 if ord(character) < 0x250 else 3 if ord(character) >= 0x2E80 else 2 for character in text)
