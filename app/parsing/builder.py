"""Collects the blocks of one document into its canonical text with exact offsets and heading paths."""

from typing import Final

from app.parsing.cleaning import clean_text, one_line
from app.parsing.errors import ParseFailed
from app.text.document import Block, BlockKind, SourceText

# Longer "headings" are body text in a heading's clothes; as a path they would be repeated on every passage.
_LONGEST_HEADING: Final = 200
_DEEPEST_PATH: Final = 8


class SourceBuilder:
    """Parsers add to it in reading order; texts are cleaned here, so no parser has to."""

    def __init__(self, max_text_chars: int) -> None:
        self._limit = max_text_chars
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._path: list[tuple[int, str]] = []
        self.title: str | None = None
        self.page_count: int | None = None

    def heading(self, text: str, level: int, page: int | None = None) -> None:
        """A heading; level 1 is the outermost, a title may be 0. It closes the headings of its level and below."""
        line = one_line(text)
        if not line:
            return
        if len(line) > _LONGEST_HEADING:
            self.block("paragraph", line, page)
            return
        self.close_headings(level)
        if len(self._path) < _DEEPEST_PATH:
            self._path.append((level, line))
        self._append("heading", line, page, "\n\n")

    def close_headings(self, level: int) -> None:
        """What follows is no longer under headings of this level or deeper."""
        self._path = [entry for entry in self._path if entry[0] < level]

    def block(self, kind: BlockKind, text: str, page: int | None = None, *, continues: bool = False) -> None:
        """A body block; `continues` says that it runs on from the one before, over a page break."""
        self._append(kind, clean_text(text).strip("\n ").rstrip(), page, " " if continues else "\n\n")

    def build(self) -> SourceText:
        title = one_line(self.title or "")[:_LONGEST_HEADING]
        return SourceText("".join(self._parts), tuple(self._blocks), self.page_count, title or None)

    def _append(self, kind: BlockKind, text: str, page: int | None, separator: str) -> None:
        if not text:
            return
        if self._blocks:
            self._parts.append(separator)
            self._length += len(separator)
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        if self._length > self._limit:
            raise ParseFailed(
                "document_too_long",
                f"The document holds more than {self._limit:,} characters of text. Split it into smaller documents.",
                max_text_chars=self._limit,
            )
        path = tuple(line for _, line in self._path)
        self._blocks.append(Block(kind, text, page, start, self._length, path))
