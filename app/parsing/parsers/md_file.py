"""Markdown: headings, paragraphs, lists, code and tables as plain text without the marks."""

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.parsing.builder import SourceBuilder
from app.parsing.encoding import decode_text
from app.parsing.job import ParseJob
from app.parsing.parsers.html_file import add_html
from app.parsing.tables import add_table

_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_TITLE: Final = re.compile(r"^title:[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.M)
_INLINE_HTML: Final = re.compile(r"<br\s*/?>", re.I)


def parse(job: ParseJob, out: SourceBuilder) -> None:
    text = decode_text(job.path.read_bytes(), job.charset).replace("\r\n", "\n").replace("\r", "\n")
    text = _take_front_matter(out, text)
    # The preset drops, without a word, what is nested more than 20 deep: ten levels of lists.
    markdown = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"])
    tokens = markdown.parse(text.replace("\x00", ""))
    _Render(out).run(tokens)


def _take_front_matter(out: SourceBuilder, text: str) -> str:
    """Keeps the YAML block that many tools put before the text as a block of its own, out of the parser's way."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        return text
    title = _TITLE.search(found[1])
    out.title = title[1] if title else None
    out.block("list", found[1])
    return text[found.end() :]


class _Render:
    """Turns markdown-it's flat list of tokens into blocks."""

    def __init__(self, out: SourceBuilder) -> None:
        self._out = out
        self._lists: list[int | None] = []
        self._lines: list[str] = []
        self._marker: str | None = None
        self._rows: list[list[str]] = []
        self._heading: int | None = None
        self._is_table = False

    def run(self, tokens: list[Token]) -> None:
        for token in tokens:
            handler = getattr(self, f"_on_{token.type}", None)
            if handler is not None:
                handler(token)

    def _on_heading_open(self, token: Token) -> None:
        self._heading = int(token.tag[1:])

    def _on_heading_close(self, _: Token) -> None:
        self._heading = None

    def _on_inline(self, token: Token) -> None:
        text = _inline_text(token.children or [])
        if self._is_table:
            self._rows[-1].append(text)
        elif self._lists:
            self._add_line(text.replace("\n", " "))
        elif self._heading is not None:
            if self._out.title is None and self._heading == 1:
                self._out.title = text
            self._out.heading(text, self._heading)
        else:
            self._out.block("paragraph", text)

    def _on_bullet_list_open(self, _: Token) -> None:
        self._lists.append(None)

    def _on_ordered_list_open(self, token: Token) -> None:
        self._lists.append(int(token.attrGet("start") or 1))

    def _on_list_item_open(self, _: Token) -> None:
        number = self._lists[-1]
        self._marker = "- " if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1

    def _on_bullet_list_close(self, _: Token) -> None:
        self._lists.pop()
        if not self._lists:
            self._out.block("list", "\n".join(self._lines))
            self._lines = []

    _on_ordered_list_close = _on_bullet_list_close

    def _on_fence(self, token: Token) -> None:
        if self._lists:
            for line in token.content.splitlines():
                self._add_line(line)
        else:
            self._out.block("code", token.content)

    _on_code_block = _on_fence

    def _on_html_block(self, token: Token) -> None:
        if not self._lists:
            add_html(self._out, token.content)

    def _on_table_open(self, _: Token) -> None:
        self._is_table = True
        self._rows = []

    def _on_tr_open(self, _: Token) -> None:
        self._rows.append([])

    def _on_table_close(self, _: Token) -> None:
        self._is_table = False
        if self._lists:
            for row in self._rows:
                self._add_line(" | ".join(row))
        else:
            add_table(self._out, self._rows)

    def _add_line(self, text: str) -> None:
        indent = "  " * (len(self._lists) - 1)
        self._lines.append(f"{indent}{self._marker or '  '}{text}")
        self._marker = None


def _inline_text(children: list[Token]) -> str:
    """Text of inline tokens: link texts without addresses, alternative texts of pictures, code as it is."""
    parts: list[str] = []
    for child in children:
        if child.type in ("text", "code_inline", "text_special"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
        elif child.type == "image":
            parts.append(_inline_text(child.children or []))
        elif child.type == "html_inline" and _INLINE_HTML.fullmatch(child.content):
            parts.append("\n")
    return "".join(parts)
