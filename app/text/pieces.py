"""The smallest units passages are packed from, and the measure of their size."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.text.sentences import sentence_spans
from app.text.tokens import count_tokens

TARGET_MIN: Final = 100
TARGET_MAX: Final = 160
# One sentence up to this size stays whole, as does a table or piece of code up to the other.
SENTENCE_LIMIT: Final = 250
TABLE_LIMIT: Final = 400

_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# 400 characters of Chinese or Japanese count as much as 160 tokens of other text.
_CJK_CHARACTER: Final = 0.4
_CLAUSE_END: Final = re.compile(r"[,;:、，：،؛·|)\]}](?=\s)|[、，：،؛]|\s")
_WINDOW: Final = 1000
_MAX_MARKS: Final = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence, a line or a whole table: `size` in the measure of `text_size`."""

    start: int
    end: int
    size: float
    sentences: int
    ends_paragraph: bool = False
    is_solid: bool = False


def text_size(text: str) -> float:
    """Tokens of `text`; for mostly Chinese or Japanese text 0.4 a character (or a token, if those are more)."""
    tokens = count_tokens(text)
    if tokens * 4 < len(text):
        return tokens
    if len(_CJK.findall(text)) * 3 < len(text):
        return tokens
    return _CJK_CHARACTER * max(len(text), tokens)


def sentence_pieces(text: str, start: int, end: int) -> Iterator[Piece]:
    """The sentences of one paragraph; overlong ones come in several pieces."""
    spans = sentence_spans(text, start, end)
    for index, (left, right) in enumerate(spans):
        yield from _sized(text, left, right, is_last=index + 1 == len(spans))


def line_pieces(text: str, start: int, end: int) -> Iterator[Piece]:
    """The lines of a list, table or piece of code that is too large to stay whole."""
    position = start
    while position < end:
        stop = text.find("\n", position, end)
        stop = end if stop < 0 else stop
        left, right = position, stop
        while left < right and text[left].isspace():
            left += 1
        while right > left and text[right - 1].isspace():
            right -= 1
        if left < right:
            # A list item may hold several sentences, of which each can start a passage.
            spans = sentence_spans(text, left, right)
            for index, (first, last) in enumerate(spans):
                yield from _sized(text, first, last, is_last=index + 1 == len(spans))
        position = stop + 1


def _sized(text: str, left: int, right: int, *, is_last: bool) -> Iterator[Piece]:
    size = text_size(text[left:right]) if right - left <= _WINDOW * 4 else SENTENCE_LIMIT + 1
    if size <= SENTENCE_LIMIT:
        yield Piece(left, right, size, 1, ends_paragraph=is_last)
        return
    cuts = list(cut_long(text, left, right))
    for index, (first, last) in enumerate(cuts):
        at_end = is_last and index + 1 == len(cuts)
        yield Piece(first, last, text_size(text[first:last]), 1 if index == 0 else 0, ends_paragraph=at_end)


def cut_long(text: str, left: int, right: int) -> Iterator[tuple[int, int]]:
    """Cuts a stretch without usable sentence ends into spans of at most `TARGET_MAX`, in linear time.

    Prefers the last clause end or space in the second half of each span; never parts a base character
    from its combining marks.
    """
    position = left
    while position < right:
        stop = _fitting_end(text, position, right)
        if stop < right:
            stop = _nice_end(text, position, stop)
        first, last = position, stop
        while first < last and text[first].isspace():
            first += 1
        while last > first and text[last - 1].isspace():
            last -= 1
        if first < last:
            yield first, last
        position = stop


def _fitting_end(text: str, position: int, right: int) -> int:
    stop = min(right, position + _WINDOW)
    while stop - position > 1:
        size = text_size(text[position:stop])
        if size <= TARGET_MAX:
            break
        stop = position + max(1, int((stop - position) * TARGET_MAX / size * 0.95))
    return stop


def _nice_end(text: str, position: int, stop: int) -> int:
    half = position + (stop - position) // 2
    best = None
    for match in _CLAUSE_END.finditer(text, half, stop):
        best = match.end()
    if best is not None:
        return best
    end = stop
    while stop - end < _MAX_MARKS and end > half and _joins_backwards(text, end):
        end -= 1
    return end


def _joins_backwards(text: str, position: int) -> bool:
    """Whether the character at `position` belongs to the one before it (marks, joiners, second half of a ZWJ pair)."""
    character = text[position]
    return unicodedata.category(character).startswith("M") or "\u200d" in (character, text[position - 1])
