"""HTML: the text a reader sees, with headings, lists, code and tables; scripts, styles and menus are dropped."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lxml import etree

from app.parsing.builder import SourceBuilder
from app.parsing.cleaning import one_line
from app.parsing.encoding import decode_text
from app.parsing.errors import ParseFailed
from app.parsing.job import ParseJob
from app.parsing.tables import add_table

_META_CHARSET: Final = re.compile(rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*[\"']?([\w.:-]+)", re.I)
_WHITE: Final = re.compile(r"[ \t\r\n\f]+")
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_DROPPED: Final = (
    "script",
    "style",
    "noscript",
    "template",
    "nav",
    "svg",
    "math",
    "head",
    "button",
    "select",
    "iframe",
)
# fmt: off
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr",
    "html", "legend", "li", "main", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th",
    "thead", "tr", "ul",
})
# fmt: on
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_DEEPEST_INDENT: Final = 8


def parse(job: ParseJob, out: SourceBuilder) -> None:
    add_html(out, decode_text(job.path.read_bytes(), _declared_charset(job.path) or job.charset))


def _declared_charset(path: Path) -> str | None:
    with path.open("rb") as file:
        found = _META_CHARSET.search(file.read(4096))
    return found[1].decode("ascii") if found else None


def add_html(out: SourceBuilder, text: str) -> None:
    """Adds the blocks of a page, or of a piece of one."""
    # Fed as UTF-8 because lxml refuses strings that carry an encoding declaration; a NUL would become U+FFFD.
    # The huge tree raises the depth that libxml2 allows from 256 to 2,048; what is deeper would be dropped.
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True)
    root = etree.fromstring(text.replace("\x00", "").encode("utf-8", "replace"), parser)
    if any(entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for entry in parser.error_log):
        raise ParseFailed("broken_document", "The page is nested too deeply to be read.")
    if root is None:
        return
    title = root.find("head/title")
    if title is not None and title.text and out.title is None:
        out.title = title.text
    etree.strip_elements(root, *_DROPPED, with_tail=False)
    _Walk(out).run(root)


class _Walk:
    """Walks the tree without recursion, gathering inline text until a block element begins or ends."""

    def __init__(self, out: SourceBuilder) -> None:
        self._out = out
        self._inline: list[str] = []
        self._list: list[str] = []
        self._depth = 0
        self._is_item = False

    def run(self, root: etree._Element) -> None:
        done: etree._Element | None = None
        for event, element in etree.iterwalk(root, events=("start", "end")):
            if done is None and event == "start":
                if _is_hidden(element) or self._add_whole(element):
                    done = element
                else:
                    self._start(element)
            elif event == "end" and (done is None or element is done):
                if done is None:
                    self._end(element)
                done = None
                self._inline.append(_WHITE.sub(" ", element.tail or ""))
        self._flush()
        self._close_list()

    def _start(self, element: etree._Element) -> None:
        tag = element.tag
        if tag in _BLOCKS:
            self._flush()
        if tag in ("ul", "ol"):
            self._depth += 1
        elif tag == "li":
            self._is_item = True
        elif tag == "br":
            self._inline.append("\n")
        elif tag == "img":
            self._inline.append(f" {element.get('alt', '')} ")
        self._inline.append(_WHITE.sub(" ", element.text or ""))

    def _end(self, element: etree._Element) -> None:
        if element.tag in _BLOCKS:
            self._flush()
        if element.tag in ("ul", "ol"):
            self._depth = max(0, self._depth - 1)

    def _add_whole(self, element: etree._Element) -> bool:
        """Adds a heading, table or piece of code; False for what is walked into."""
        tag = element.tag
        if tag not in _HEADINGS and tag != "pre" and not (tag == "table" and _is_data(element)):
            return False
        self._flush()
        self._close_list()
        if tag == "pre":
            self._out.block("code", "".join(element.itertext()))
        elif tag == "table":
            add_table(self._out, _rows(element))
        else:
            self._out.heading(_text_of(element), _HEADINGS[tag])
        return True

    def _flush(self) -> None:
        text = "".join(self._inline)
        self._inline.clear()
        if not text.strip():
            return
        if self._depth:
            indent = "  " * min(self._depth - 1, _DEEPEST_INDENT)
            self._list.append(f"{indent}{'- ' if self._is_item else '  '}{one_line(text)}")
            self._is_item = False
            return
        self._close_list()
        for paragraph in _PARAGRAPHS.split(text):
            self._out.block("paragraph", "\n".join(one_line(line) for line in paragraph.strip().split("\n")))

    def _close_list(self) -> None:
        if self._list:
            self._out.block("list", "\n".join(self._list))
            self._list.clear()


def _is_hidden(element: etree._Element) -> bool:
    return element.get("hidden") is not None or "display:none" in (element.get("style") or "").replace(" ", "").lower()


def _is_data(table: etree._Element) -> bool:
    """Whether a table holds data rather than placing parts of the page."""
    if next(table.iterdescendants("table", *_HEADINGS), None) is not None:
        return False
    return any(sum(1 for cell in row if cell.tag in ("td", "th")) > 1 for row in table.iter("tr"))


def _rows(table: etree._Element) -> Iterator[list[str]]:
    for row in table.iter("tr"):
        yield [_text_of(cell) for cell in row if cell.tag in ("td", "th")]


def _text_of(element: etree._Element) -> str:
    """The text below an element on one line, with a space where a block or line ends."""
    parts: list[str] = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if node.tag in _BLOCKS or node.tag == "br":
            parts.append(" ")
        if event == "start":
            parts.append(node.text or "")
        elif node is not element:
            parts.append(node.tail or "")
    return one_line("".join(parts))
