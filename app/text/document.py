"""The value types of the text road: what a parsed file is before it is cut into passages.

Owns the canonical text and its offsets; how a file becomes one is `app/parsing`'s business.
"""

from dataclasses import dataclass
from typing import Literal

BlockKind = Literal["heading", "paragraph", "table", "list", "code"]


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a document in reading order: `source.text[char_start:char_end] == text`.

    `heading_path` names the headings above it from the outermost in; a heading's own path ends with
    the heading itself. `page` counts from 1 and is None where the format has no pages.
    """

    kind: BlockKind
    text: str
    page: int | None
    char_start: int
    char_end: int
    heading_path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceText:
    """The canonical text of one document version; every character offset in the system indexes `text`.

    Blocks are ordered and do not overlap. Text between two blocks is white space only; a single space
    there says that a paragraph runs on over a page break.
    """

    text: str
    blocks: tuple[Block, ...]
    page_count: int | None
    title: str | None
