"""Finds sentences in text of any script, with exact offsets. Pure; knows nothing of blocks or tokens."""

import re
from collections.abc import Iterator
from typing import Final

from app.text.abbreviations import (
    ABBREVIATIONS,
    NUMBER_ABBREVIATIONS,
    OPEN_ABBREVIATIONS,
    SENTENCE_STARTERS,
)

_CLOSERS: Final = "\"'”’»›）)】』」〉》］]｣"
_WIDE_ENDS: Final = "。！？；｡．।॥۔؟།።፧။។៕։᠃᠉"
# A sentence may end after a wide end (no space needed), after . ! ? … and a space, or at a blank line.
_CANDIDATE: Final = re.compile(
    rf"(?P<wide>[{_WIDE_ENDS}]+[{_WIDE_ENDS}!?…]*[{re.escape(_CLOSERS)}]*)"
    rf"|(?P<latin>[.!?…]+[{re.escape(_CLOSERS)}]*)(?=\s)"
    r"|(?P<blank>\n[^\S\n]*\n)"
)
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_UNSPACED_TARGET: Final = 120
_WORD_BEFORE: Final = re.compile(r"[^\s(\[{«“„\"'‘—–/]+$")
_WORD_AFTER: Final = re.compile(r"\s*([\"'“„«‘(\[]*)(\w*)")
_LOOK_BACK: Final = 40


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Spans of the sentences in `text[start:end]`, in order, without white space around them.

    Together they hold every character that is not white space. Ends are 。！？； and their like in any
    script, Latin . ! ? unless an abbreviation, initial or ordinal stands before the dot, and blank
    lines. Thai, Lao, Khmer and Burmese, which mark no ends, break at spaces after about 120 characters.
    """
    stop = len(text) if end is None else end
    spans: list[tuple[int, int]] = []
    for left, right in _raw_spans(text, start, stop):
        begin, finish = _trim(text, left, right)
        if begin == finish:
            continue
        if finish - begin > 2 * _UNSPACED_TARGET and _is_unspaced(text, begin):
            spans.extend(_split_at_spaces(text, begin, finish))
        else:
            spans.append((begin, finish))
    return spans


def split_sentences(text: str) -> list[str]:
    """The sentences of `text` as strings."""
    return [text[left:right] for left, right in sentence_spans(text)]


def _raw_spans(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    left = start
    for match in _CANDIDATE.finditer(text, start, stop):
        if match.lastgroup == "latin" and not _is_latin_end(text, match.start(), match.end(), left, stop):
            continue
        yield left, match.end()
        left = match.end()
    if left < stop:
        yield left, stop


def _trim(text: str, left: int, right: int) -> tuple[int, int]:
    while left < right and text[left].isspace():
        left += 1
    while left < right and text[right - 1].isspace():
        right -= 1
    return left, right


def _is_latin_end(text: str, mark: int, after: int, left: int, stop: int) -> bool:
    """Whether the . ! ? at `mark` ends a sentence; `after` is the position behind closing quotes."""
    following = _WORD_AFTER.match(text, after, min(stop, after + _LOOK_BACK))
    opener, word = (following[1], following[2]) if following else ("", "")
    if word[:1].islower() and not opener:
        return False
    if text[mark] != "." or after - mark > 1:
        return True
    before = _WORD_BEFORE.search(text[max(left, mark - _LOOK_BACK) : mark])
    if before is None:
        return True
    is_first = mark - len(before[0]) - left <= 1
    return not _is_abbreviation(before[0], word, is_first=is_first)


def _is_abbreviation(before: str, following: str, *, is_first: bool) -> bool:
    bare = before.casefold()
    if bare in ABBREVIATIONS or (bare in NUMBER_ABBREVIATIONS and following[:1].isdigit()):
        return True
    if bare.isdecimal():
        # "am 3. Oktober", "1. Introduction": an ordinal or a list number; "on pages 9-18. The" is an end.
        return len(bare) <= 2 and (is_first or following not in SENTENCE_STARTERS)
    if len(before) == 1 and before.isupper():
        return True
    if bare in OPEN_ABBREVIATIONS or ("." in before and all(len(part) <= 2 for part in before.split("."))):
        return following not in SENTENCE_STARTERS
    return False


def _is_unspaced(text: str, left: int) -> bool:
    sample = text[left : left + 200]
    return len(_UNSPACED.findall(sample)) * 2 > len(sample)


def _split_at_spaces(text: str, left: int, right: int) -> Iterator[tuple[int, int]]:
    begin = left
    while right - begin > 2 * _UNSPACED_TARGET:
        space = text.find(" ", begin + _UNSPACED_TARGET, right)
        if space < 0:
            break
        span = _trim(text, begin, space)
        if span[0] < span[1]:
            yield span
        begin = space
    span = _trim(text, begin, right)
    if span[0] < span[1]:
        yield span
