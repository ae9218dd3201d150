"""PDF: reads the text layer page by page; what the lines mean is decided in `pdf_layout.py`."""

import re
from ctypes import c_double, create_string_buffer
from math import hypot
from typing import Final

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from app.parsing.builder import SourceBuilder
from app.parsing.cleaning import fold_glyph_forms
from app.parsing.errors import ParseFailed
from app.parsing.job import ParseJob
from app.parsing.page_limit import check_pages
from app.parsing.parsers.pdf_layout import Line, Page, add_pages

# PDFium marks a hyphen that divides a word at a line's end with U+FFFE and drops the line end after it.
_LINE_END: Final = re.compile("\r\n|\r|\n|\ufffe")
_UNMAPPED: Final = re.compile("[\ufffd\ue000-\uf8ff\x01-\x08\x0e-\x1f]")
_JUNK_TITLE: Final = re.compile(
    r"untitled|\(anonymous\)|microsoft (?:word|powerpoint) - |.*\.(?:docx?|indd|qxd)$", re.I
)
_PASSWORD_ERROR: Final = 4
_NAME_BYTES: Final = 96


def parse(job: ParseJob, out: SourceBuilder) -> None:
    document = _open(job)
    out.page_count = len(document)
    check_pages(out.page_count, job.limits, "pages")
    title = document.get_metadata_value("Title")
    out.title = None if _JUNK_TITLE.match(title) else title
    pages: list[Page] = []
    has_marks = False
    characters = 0
    for index in range(out.page_count):
        page = document[index]
        lines = _lines(page)
        has_marks = has_marks or bool(lines) or next(iter(page.get_objects(max_depth=1)), None) is not None
        characters += sum(len(line.text) for line in lines)
        if characters > job.limits.max_text_chars:
            break
        pages.append(Page(index + 1, page.get_height(), lines))
        page.close()
    _require_text(pages, has_marks=has_marks)
    add_pages(out, pages)


def _open(job: ParseJob) -> pdfium.PdfDocument:
    try:
        return pdfium.PdfDocument(job.path)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == _PASSWORD_ERROR or "password" in str(error).lower():
            raise ParseFailed(
                "encrypted_document", "The PDF is protected by a password. Remove the password and upload it again."
            ) from None
        raise ParseFailed(
            "broken_document", "The PDF is damaged or incomplete. Open it, save it again and upload the copy."
        ) from None


def _require_text(pages: list[Page], *, has_marks: bool) -> None:
    """Refuses scans, and fonts without a Unicode table: both look fine and hold no readable text."""
    text = "".join(line.text for page in pages for line in page.lines)
    readable = sum(1 for character in text if character.isalnum())
    if readable and len(_UNMAPPED.findall(text)) <= readable:
        return
    if not has_marks:
        raise ParseFailed("blank_document", "The PDF has only empty pages.")
    raise ParseFailed(
        "no_text_layer",
        "The PDF holds pictures of pages (a scan) or fonts without letters, and no readable text. "
        "Run text recognition (OCR) on it and upload the result.",
        pages=len(pages),
    )


def _lines(page: pdfium.PdfPage) -> list[Line]:
    """The page's lines in content order, with where they stand and how large they are, in points."""
    textpage = page.get_textpage()
    text = textpage.get_text_range()
    lines: list[Line] = []
    position = unit = 0
    for match in (*_LINE_END.finditer(text), None):
        part = text[position : match.start() if match else len(text)]
        if part.strip():
            lines.append(_measure(textpage, part, unit, is_hyphenated=match is not None and match[0] == "\ufffe"))
        if match:
            # PDFium counts UTF-16 units, Python characters.
            unit += len(text[position : match.end()].encode("utf-16-le", "surrogatepass")) // 2
            position = match.end()
    textpage.close()
    return lines


def _measure(textpage: pdfium.PdfTextPage, text: str, unit: int, *, is_hyphenated: bool) -> Line:
    first = raw.FPDFText_GetCharIndexFromTextIndex(textpage, unit + len(text) - len(text.lstrip()))
    last = raw.FPDFText_GetCharIndexFromTextIndex(textpage, unit + len(text.rstrip()) - 1)
    middle = (first + last) // 2
    x, y, left, right, bottom, top = (c_double() for _ in range(6))
    raw.FPDFText_GetCharOrigin(textpage, first, x, y)
    raw.FPDFText_GetCharBox(textpage, last, left, right, bottom, top)
    matrix = raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(textpage, middle, matrix)
    size = raw.FPDFText_GetFontSize(textpage, middle) * (hypot(matrix.b, matrix.d) or 1.0)
    return Line(
        text=fold_glyph_forms(text.strip()),
        left=x.value,
        right=right.value,
        baseline=y.value,
        size=round(size, 1),
        is_bold=_is_bold(textpage, middle),
        is_hyphenated=is_hyphenated,
    )


def _is_bold(textpage: pdfium.PdfTextPage, index: int) -> bool:
    name = create_string_buffer(_NAME_BYTES)
    length = raw.FPDFText_GetFontInfo(textpage, index, name, _NAME_BYTES, None)
    label = bytes(name)[: max(0, min(length, _NAME_BYTES) - 1)].lower()
    return b"bold" in label or b"black" in label or b"heavy" in label
