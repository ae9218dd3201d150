"""Word documents: headings, paragraphs, lists and tables in document order.

Walks the XML rather than python-docx's paragraphs, which leave out inserted (tracked) text and
everything inside content controls.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import docx
from docx.oxml import parse_xml
from docx.oxml.ns import qn

from app.parsing.builder import SourceBuilder
from app.parsing.cleaning import one_line
from app.parsing.job import ParseJob
from app.parsing.tables import add_table
from app.parsing.zip_check import check_office_file

_HEADING_STYLE: Final = re.compile(r"(?:heading|überschrift|titre|título|заголовок|标题|見出し)\s*(\d)", re.I)
_P, _TBL, _TR, _TC, _SDT = (qn(f"w:{name}") for name in ("p", "tbl", "tr", "tc", "sdt"))
_WRAPPERS: Final = frozenset(
    qn(f"w:{name}") for name in ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag")
)
_TEXT, _TAB = qn("w:t"), qn("w:tab")
_BREAKS: Final = frozenset((qn("w:br"), qn("w:cr")))
_FALLBACK: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_REMOVED: Final = frozenset((qn("w:del"), qn("w:moveFrom"), qn("w:pPr"), qn("w:rPr"), _FALLBACK))


def parse(job: ParseJob, out: SourceBuilder) -> None:
    check_office_file(job.path, "docx")
    document = docx.Document(str(job.path))
    out.title = document.core_properties.title
    _Reader(out, _heading_levels(document)).run(document.element.body)
    out.close_headings(0)
    for notes in _notes(document):
        out.block("list", notes)


def _notes(document: Any) -> Iterator[str]:
    """Footnotes and endnotes, one a line: python-docx has no access to them."""
    for part in document.part.package.iter_parts():
        if str(part.partname) in ("/word/footnotes.xml", "/word/endnotes.xml"):
            lines = (one_line(_text_of(note)) for note in parse_xml(part.blob))
            yield "\n".join(f"- {line}" for line in lines if line)


def _heading_levels(document: Any) -> dict[str, int]:
    """Style ids that are headings, with their levels; a title is level 0, above all others."""
    levels: dict[str, int] = {}
    for style in document.styles.element.iterchildren(qn("w:style")):
        style_id = style.get(qn("w:styleId")) or ""
        name = style.find(qn("w:name"))
        label = (name.get(qn("w:val")) if name is not None else "") or ""
        outline = style.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
        numbered = _HEADING_STYLE.match(label)
        if numbered is not None:
            levels[style_id] = int(numbered[1])
        elif label.lower() == "title":
            levels[style_id] = 0
        elif outline is not None and (outline.get(qn("w:val")) or "9") < "9":
            levels[style_id] = int(outline.get(qn("w:val"))) + 1
    return levels


class _Reader:
    """Adds the children of the body; list paragraphs that follow each other become one list."""

    def __init__(self, out: SourceBuilder, levels: dict[str, int]) -> None:
        self._out = out
        self._levels = levels
        self._list: list[str] = []

    def run(self, body: Any) -> None:
        for element in _flat(body):
            if element.tag == _TBL:
                self._close_list()
                add_table(self._out, _rows(element))
            else:
                self._add_paragraph(element)
        self._close_list()

    def _add_paragraph(self, paragraph: Any) -> None:
        text = _text_of(paragraph)
        if not text.strip():
            return
        style = _property(paragraph, "pStyle") or ""
        level = self._levels.get(style)
        outline = _property(paragraph, "outlineLvl")
        if level is None and outline is not None and outline < "9":
            level = int(outline) + 1
        depth = paragraph.find(f"{qn('w:pPr')}/{qn('w:numPr')}/{qn('w:ilvl')}")
        if level is not None:
            self._close_list()
            if level == 0:
                self._out.title = self._out.title or text
            self._out.heading(text, level)
        elif depth is not None or style.lower().startswith("list"):
            indent = int(depth.get(qn("w:val")) or 0) if depth is not None else 0
            self._list.append(f"{'  ' * min(indent, 8)}- {one_line(text)}")
        else:
            self._close_list()
            self._out.block("paragraph", text)

    def _close_list(self) -> None:
        if self._list:
            self._out.block("list", "\n".join(self._list))
            self._list = []


def _flat(parent: Any) -> Iterator[Any]:
    """Paragraphs and tables in order, also those inside content controls and insertions."""
    stack = list(reversed(parent))
    while stack:
        element = stack.pop()
        if element.tag in (_P, _TBL):
            yield element
        elif element.tag in _WRAPPERS:
            stack.extend(reversed(element))


def _property(paragraph: Any, name: str) -> str | None:
    element = paragraph.find(f"{qn('w:pPr')}/{qn(f'w:{name}')}")
    value: str | None = element.get(qn("w:val")) if element is not None else None
    return value


def _text_of(element: Any) -> str:
    """Visible text below an element: insertions count, deletions do not; text boxes follow where they are anchored."""
    parts: list[str] = []
    stack = [element]
    while stack:
        node = stack.pop()
        if node.tag == _TEXT:
            parts.append(node.text or "")
        elif node.tag == _TAB:
            parts.append("\t")
        elif node.tag in _BREAKS:
            parts.append("\n")
        elif node.tag not in _REMOVED:
            if node.tag == _P and node is not element and parts:
                parts.append("\n")
            stack.extend(reversed(node))
    return "".join(parts)


def _rows(table: Any) -> Iterator[list[str]]:
    for row in _descend(table, _TR):
        yield [_text_of(cell) for cell in _descend(row, _TC)]


def _descend(parent: Any, wanted: str) -> Iterator[Any]:
    """Rows of a table or cells of a row, also where a content control wraps them."""
    stack = list(reversed(parent))
    while stack:
        element = stack.pop()
        if element.tag == wanted:
            yield element
        elif element.tag in _WRAPPERS:
            stack.extend(reversed(element))
