"""Makes headings and paragraphs of the lines of a PDF, from their sizes and places. Pure."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Final

from app.parsing.builder import SourceBuilder

_MARGIN: Final = 0.09
_LARGER: Final = 1.12
_LONGEST_HEADING: Final = 160
_HEADING_LEVELS: Final = 4
_PARAGRAPH_GAP: Final = 1.35
_TERMINAL: Final = tuple('.!?:;。！？：；…؟।"”»」』)）')
_BULLET: Final = re.compile(r"(?:[•·▪●○■□–—*-]|\(?\d{1,3}[.)]|[a-z]\))\s")
_CJK_EDGE: Final = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff65]")
_NUMBER: Final = re.compile(r"\d+|^[ivxlc]{1,6}$")
# The dots between an entry of a table of contents and its page.
_LEADER: Final = re.compile(r"\s*(?:\.\s?){4,}\s*")
_LEADER_MARK: Final = " … "


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page; places in points from the page's lower left corner."""

    text: str
    left: float
    right: float
    baseline: float
    size: float
    is_bold: bool
    is_hyphenated: bool


@dataclass(frozen=True, slots=True)
class Page:
    number: int
    height: float
    lines: list[Line]


def add_pages(out: SourceBuilder, pages: list[Page]) -> None:
    """Adds all pages; a paragraph that runs over a page break goes on in a block marked so."""
    style = _Style.of(pages)
    pages = _without_running_lines(pages, style.size)
    is_open = False
    for page in pages:
        for index, group in enumerate(_paragraphs(page.lines, style)):
            text = _join(group)
            level = style.level(group, text)
            if level is not None:
                out.heading(text, level, page.number)
                is_open = False
                continue
            out.block("paragraph", text, page.number, continues=index == 0 and is_open and _runs_on(text))
            is_open = not text.endswith(_TERMINAL)


def _without_running_lines(pages: list[Page], body_size: float) -> list[Page]:
    """Drops headers and footers: lines that stand, but for numbers, at the edge of most pages."""
    if len(pages) < 2:
        return pages
    outer = [_outer_lines(page, body_size) for page in pages]
    counts = Counter(text for lines in outer for text in set(lines.values()))
    running = {text for text, count in counts.items() if count * 2 > len(pages)}
    return [
        Page(
            page.number,
            page.height,
            [line for index, line in enumerate(page.lines) if lines.get(index) not in running],
        )
        for page, lines in zip(pages, outer, strict=True)
    ]


def _outer_lines(page: Page, body_size: float) -> dict[int, str]:
    """Small lines in the margins, and the highest and lowest line where they are bare numbers; numbers as `#`."""
    heights = [line.baseline for line in page.lines]
    top, bottom = max(heights, default=0.0), min(heights, default=0.0)
    upper, lower = page.height * (1 - _MARGIN), page.height * _MARGIN
    found: dict[int, str] = {}
    for index, line in enumerate(page.lines):
        text = _NUMBER.sub("#", line.text)
        is_number = text == "#" and line.baseline in (top, bottom)
        is_marginal = not lower < line.baseline < upper and line.size < body_size * _LARGER
        if is_number or is_marginal:
            found[index] = text
    return found


@dataclass(frozen=True, slots=True)
class _Style:
    """What is normal in this document: body size, line pitch in sizes, and the sizes of headings."""

    size: float
    is_bold: bool
    pitch: float
    heading_sizes: list[float]

    @classmethod
    def of(cls, pages: list[Page]) -> "_Style":
        weights: Counter[tuple[float, bool]] = Counter()
        pitches: list[float] = []
        for page in pages:
            for line in page.lines:
                weights[line.size, line.is_bold] += len(line.text)
            for before, line in zip(page.lines, page.lines[1:], strict=False):
                drop = before.baseline - line.baseline
                if before.size == line.size and line.size and 0 < drop < 3 * line.size:
                    pitches.append(drop / line.size)
        (size, is_bold), _ = weights.most_common(1)[0] if weights else ((0.0, False), 0)
        larger = sorted({at for at, _ in weights if size and at >= size * _LARGER}, reverse=True)
        return cls(size, is_bold, median(pitches) if pitches else 1.2, larger)

    def level(self, group: list[Line], text: str) -> int | None:
        """The heading level of a group of lines, from 1; None for body text."""
        if (
            len(group) > 3
            or len(text) > _LONGEST_HEADING
            or _LEADER_MARK in text
            or not any(character.isalpha() for character in text)
        ):
            return None
        size = group[0].size
        if size in self.heading_sizes:
            return min(self.heading_sizes.index(size) + 1, _HEADING_LEVELS)
        is_emphasised = all(line.is_bold for line in group) and not self.is_bold and size >= self.size
        if is_emphasised and len(group) == 1 and not text.endswith(_TERMINAL):
            return min(len(self.heading_sizes), _HEADING_LEVELS) + 1
        return None


def _paragraphs(lines: list[Line], style: _Style) -> Iterator[list[Line]]:
    group: list[Line] = []
    widest = 0.0
    for line in lines:
        if group and _is_new(group[-1], line, style, widest):
            yield group
            group, widest = [], 0.0
        group.append(line)
        widest = max(widest, line.right)
    if group:
        yield group


def _is_new(before: Line, line: Line, style: _Style, widest: float) -> bool:
    if before.is_hyphenated:
        return False
    if abs(before.size - line.size) > 0.1 * max(before.size, line.size) or before.is_bold != line.is_bold:
        return True
    if _BULLET.match(line.text):
        return True
    drop = before.baseline - line.baseline
    if drop < -0.5 * line.size:
        # The next column: the paragraph goes on there unless it was finished.
        return before.text.endswith(_TERMINAL)
    if drop > style.pitch * _PARAGRAPH_GAP * max(line.size, 1.0):
        return True
    return _would_have_fit(before, line, max(widest, line.right))


def _would_have_fit(before: Line, line: Line, edge: float) -> bool:
    """Whether the line before was ended on purpose: the next line's first word had room on it, twice over."""
    word = 1 if _CJK_EDGE.match(line.text[0]) else len(line.text.split(maxsplit=1)[0]) + 1
    character_width = (line.right - line.left) / len(line.text)
    return before.right + 2 * word * character_width < edge


def _join(lines: list[Line]) -> str:
    """One text of several lines: words divided by a hyphen are joined, Chinese and Japanese need no space."""
    parts: list[str] = []
    for index, line in enumerate(lines):
        parts.append(line.text)
        following = lines[index + 1].text if index + 1 < len(lines) else ""
        if line.is_hyphenated:
            # "Anglo-\nSaxon" keeps its hyphen, "exam-\nple" does not.
            parts.append("" if following[:1].islower() else "-")
        elif following and not (_CJK_EDGE.match(line.text[-1]) and _CJK_EDGE.match(following[0])):
            parts.append(" ")
    return _LEADER.sub(_LEADER_MARK, "".join(parts))


def _runs_on(text: str) -> bool:
    return text[0].islower() or _CJK_EDGE.match(text[0]) is not None
