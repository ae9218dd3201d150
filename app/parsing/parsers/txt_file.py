"""Plain text: paragraphs at blank lines, or at each line where lines are paragraphs."""

import re
from collections.abc import Iterator
from typing import Final

from app.parsing.builder import SourceBuilder
from app.parsing.cleaning import clean_text
from app.parsing.encoding import decode_text
from app.parsing.job import ParseJob

_BLANK: Final = re.compile(r"\n(?:[^\S\n]*\n)+")
_BULLET: Final = re.compile(r"[^\S\n]*(?:[-*•·–]|\d{1,3}[.)])[^\S\n]")
# Editors wrap lines below this; a paragraph with a longer line is not wrapped, so its line ends mean something.
_WRAP_WIDTH: Final = 120
_ENDS: Final = tuple('.!?。！？…:："”」』')


def parse(job: ParseJob, out: SourceBuilder) -> None:
    add_text(out, decode_text(job.path.read_bytes(), job.charset))


def add_text(out: SourceBuilder, text: str) -> None:
    """Adds the paragraphs and lists of plain text."""
    for part in _BLANK.split(clean_text(text)):
        lines = part.split("\n")
        if sum(1 for line in lines if _BULLET.match(line)) * 2 > len(lines) > 1:
            out.block("list", part)
        else:
            for paragraph in _paragraphs(lines):
                out.block("paragraph", paragraph)


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Joins hard-wrapped lines into one paragraph; gives each line alone where lines are paragraphs."""
    if len(lines) == 1:
        yield lines[0]
        return
    is_wrapped = max(len(line) for line in lines) <= _WRAP_WIDTH
    group: list[str] = []
    for index, line in enumerate(lines):
        group.append(line)
        following = lines[index + 1] if index + 1 < len(lines) else None
        if following is None or not is_wrapped or _starts_paragraph(line, following):
            yield "\n".join(group)
            group = []


def _starts_paragraph(line: str, following: str) -> bool:
    """An indented line after one that ends a sentence, as novels and old mails have it."""
    return following.startswith(("　　", "    ", "\t")) and line.rstrip().endswith(_ENDS)
