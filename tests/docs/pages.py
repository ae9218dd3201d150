"""The documentation as tests read it: pages, fenced blocks, tables and links. What is right is decided by the tests."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.sources import ROOT

DOCS = ROOT / "docs"
FENCE = re.compile(r"(?ms)^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$")
SEPARATOR = re.compile(r"[|:\- ]+")
ANY = "…"


@dataclass(frozen=True)
class Example:
    """A block that is run, and the lines shown as its output (none if nothing is shown)."""

    line: int
    command: str
    shown: tuple[str, ...]


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def guides() -> str:
    """Every page that people write, put together."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md")))


def without_code(text: str) -> str:
    return FENCE.sub("", text)


def examples(name: str) -> list[Example]:
    """The blocks marked `bash run`, each with the `text output` block that comes next before another one is run."""
    found: list[Example] = []
    text = page(name)
    for block in FENCE.finditer(text):
        if block["info"] == "bash run":
            found.append(Example(text.count("\n", 0, block.start()) + 1, block["text"], ()))
        elif block["info"] == "text output":
            found[-1] = Example(found[-1].line, found[-1].command, tuple(block["text"].splitlines()))
    return found


def pattern(shown: str) -> str:
    """A regular expression for a line of output in which the ellipsis stands for anything."""
    return ".*".join(re.escape(part) for part in shown.split(ANY))


def tables(text: str) -> Iterator[list[dict[str, str]]]:
    """The tables of a page, each row by the heads of its columns; code marks are taken off single words."""
    for block in re.findall(r"(?m)(?:^\|.*\|\n)+", text + "\n"):
        head, separator, *rows = (_cells(line) for line in block.splitlines())
        assert all(SEPARATOR.fullmatch(cell) for cell in separator), block
        yield [dict(zip(head, row, strict=True)) for row in rows]


def column(text: str, head: str) -> list[str]:
    """What stands in all columns of this head; a cell may hold several names."""
    return [
        name
        for table in tables(text)
        for row in table
        if head in row
        for name in re.findall(r"`([^`]+)`", row[head]) or [row[head]]
    ]


def rows(text: str, *heads: str) -> Iterator[dict[str, str]]:
    """Rows of the tables that begin with these columns, without code marks."""
    for table in tables(text):
        for row in table:
            if tuple(row)[: len(heads)] == heads:
                yield {head: cell.strip("`") for head, cell in row.items()}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def links(path: Path) -> list[str]:
    """Targets of the links of a page, those of pictures included."""
    return re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text(encoding="utf-8")))


def anchors(path: Path) -> set[str]:
    """The fragments that headings get, as the usual hosts of Markdown make them."""
    titles = re.findall(r"(?m)^#+ (.+)$", without_code(path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
