"""Cuts a document into passages: the unit of the lazy index, of `baseline` and of citations."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.text.document import Block, SourceText
from app.text.pieces import (
    SENTENCE_LIMIT,
    TABLE_LIMIT,
    TARGET_MAX,
    TARGET_MIN,
    Piece,
    line_pieces,
    sentence_pieces,
    text_size,
)
from app.text.tokens import count_tokens

_TAIL: Final = 40
_STRAY_HEADINGS_LIMIT: Final = 60


@dataclass(frozen=True, slots=True)
class PassageDraft:
    """A passage before it has a row: `text == source.text[char_start:char_end]`.

    `heading_path` holds the headings above it, outermost first; pages count from 1.
    """

    ordinal: int
    text: str
    tokens: int
    page_start: int | None
    page_end: int | None
    char_start: int
    char_end: int
    heading_path: tuple[str, ...]
    sentence_count: int


@dataclass(slots=True)
class _Section:
    """The blocks under one heading, with where stray headings before or behind them begin and end."""

    path: tuple[str, ...]
    body: list[Block]
    lead_start: int | None = None
    trail_end: int | None = None


def split_passages(source: SourceText) -> list[PassageDraft]:
    """Passages of whole sentences in reading order, about 100-160 tokens (Chinese, Japanese: 250-400 characters).

    Every character of a block that is not a heading's is in exactly one passage. No passage holds text
    from under two headings. A table or piece of code of up to about 400 tokens stays whole, a longer one
    is cut between lines; a sentence of more than about 250 tokens is cut at commas or spaces.
    A heading with nothing under it would be lost, so it joins the passage that follows it (at the
    end of a document: the one before it) as ordinary text.
    """
    pages = _PageIndex(source.blocks)
    drafts: list[PassageDraft] = []
    for section in _sections(source):
        groups = _pack(list(_pieces(source.text, section.body)))
        for group, start, end in _extents(section, groups):
            page_start, page_end = pages.range(start, end)
            text = source.text[start:end]
            drafts.append(
                PassageDraft(
                    ordinal=len(drafts),
                    text=text,
                    tokens=count_tokens(text),
                    page_start=page_start,
                    page_end=page_end,
                    char_start=start,
                    char_end=end,
                    heading_path=section.path,
                    sentence_count=sum(piece.sentences for piece in group),
                )
            )
    return drafts


def _extents(section: _Section, groups: list[list[Piece]]) -> Iterator[tuple[list[Piece], int, int]]:
    """Where each group begins and ends, stray headings of the section included in its first or last one."""
    for index, group in enumerate(groups):
        start, end = group[0].start, group[-1].end
        if index == 0 and section.lead_start is not None:
            start = section.lead_start
        if index + 1 == len(groups) and section.trail_end is not None:
            end = section.trail_end
        yield group, start, end


def _sections(source: SourceText) -> list[_Section]:
    """Runs of body blocks under one heading; headings that no path names are attached to a neighbour."""
    sections: list[_Section] = []
    stray: list[Block] = []
    for index, block in enumerate(source.blocks):
        if not block.text.strip():
            continue
        if block.kind == "heading":
            if _is_stray(source.blocks, index):
                stray.append(block)
            continue
        current = sections[-1] if sections else None
        if current is None or current.path != block.heading_path or _has_heading_between(source, current, index):
            current = _Section(path=block.heading_path, body=[])
            _attach_stray(sections, current, stray, source.text)
            sections.append(current)
        current.body.append(block)
    _attach_trailing(sections, stray, source.text)
    return sections


def _is_stray(blocks: tuple[Block, ...], index: int) -> bool:
    """Whether nothing stands under the heading, so that no passage's path would name it."""
    path = blocks[index].heading_path
    for block in blocks[index + 1 :]:
        below = block.heading_path[: len(path)] == path
        if not below:
            return True
        if block.kind == "heading" and block.heading_path == path:
            return True
        if block.kind != "heading" and block.text.strip():
            return False
    return True


def _has_heading_between(source: SourceText, section: _Section, index: int) -> bool:
    last = section.body[-1]
    position = index - 1
    while position >= 0 and source.blocks[position] is not last:
        if source.blocks[position].kind == "heading":
            return True
        position -= 1
    return False


def _attach_stray(sections: list[_Section], following: _Section, stray: list[Block], text: str) -> None:
    """Puts waiting headings before the section that follows; a long run of them becomes a section of its own."""
    if not stray:
        return
    first, last = stray[0], stray[-1]
    if text_size(text[first.char_start : last.char_end]) <= _STRAY_HEADINGS_LIMIT:
        following.lead_start = first.char_start
    else:
        sections.append(_Section(path=first.heading_path[:-1], body=list(stray)))
    stray.clear()


def _attach_trailing(sections: list[_Section], stray: list[Block], text: str) -> None:
    if not stray:
        return
    first, last = stray[0], stray[-1]
    if sections and text_size(text[first.char_start : last.char_end]) <= _STRAY_HEADINGS_LIMIT:
        sections[-1].trail_end = last.char_end
    else:
        sections.append(_Section(path=first.heading_path[:-1], body=list(stray)))


def _pieces(text: str, body: list[Block]) -> Iterator[Piece]:
    """The smallest units that passages are packed from, in order."""
    index = 0
    while index < len(body):
        block = body[index]
        if block.kind in ("paragraph", "heading"):
            last = index
            # A single space between blocks marks a paragraph that runs on over a page break.
            while last + 1 < len(body) and text[body[last].char_end : body[last + 1].char_start] == " ":
                last += 1
            yield from sentence_pieces(text, block.char_start, body[last].char_end)
            index = last + 1
        else:
            yield from _solid_pieces(text, block)
            index += 1


def _solid_pieces(text: str, block: Block) -> Iterator[Piece]:
    if block.kind == "list":
        yield from line_pieces(text, block.char_start, block.char_end)
        return
    size = text_size(block.text)
    if size <= TABLE_LIMIT:
        count = max(1, block.text.count("\n") + 1)
        yield Piece(block.char_start, block.char_end, size, count, ends_paragraph=True, is_solid=True)
    else:
        yield from line_pieces(text, block.char_start, block.char_end)


def _pack(pieces: list[Piece]) -> list[list[Piece]]:
    """Groups pieces in order; a group closes at a paragraph's end once it is large enough, else when full."""
    groups: list[list[Piece]] = []
    current: list[Piece] = []
    size = 0.0
    for piece in pieces:
        if current and size + piece.size > _room(size, piece):
            groups.append(current)
            current, size = [], 0.0
        current.append(piece)
        size += piece.size
        if size >= TARGET_MIN and piece.ends_paragraph:
            groups.append(current)
            current, size = [], 0.0
    if current:
        groups.append(current)
    return _join_tail(groups)


def _room(size: float, piece: Piece) -> int:
    """How large a group of `size` may grow by `piece`: a short one rather joins a large piece than stand alone."""
    if size >= _TAIL:
        return TARGET_MAX
    return TABLE_LIMIT if piece.is_solid else SENTENCE_LIMIT


def _join_tail(groups: list[list[Piece]]) -> list[list[Piece]]:
    """A section's short last group joins the one before it where both still make one passage."""
    if len(groups) < 2:
        return groups
    before, tail = groups[-2], groups[-1]
    tail_size = sum(piece.size for piece in tail)
    total = tail_size + sum(piece.size for piece in before)
    if tail_size < _TAIL and total <= SENTENCE_LIMIT:
        groups[-2:] = [before + tail]
    return groups


class _PageIndex:
    """Looks up the pages that a range of characters touches."""

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self._starts = [block.char_start for block in blocks]
        self._pages = [block.page for block in blocks]

    def range(self, start: int, end: int) -> tuple[int | None, int | None]:
        first = self._pages[max(0, bisect_right(self._starts, start) - 1)]
        last = self._pages[max(0, bisect_right(self._starts, end - 1) - 1)]
        return first, last
