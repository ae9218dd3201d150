"""Documents that the parsing tests make themselves, in every format, and one way to parse them."""

import io
import zipfile
from contextlib import aclosing
from pathlib import Path

import docx
import openpyxl
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, PageBreak, Paragraph, SimpleDocTemplate

from app.parsing.job import ParseLimits
from app.parsing.service import FileParser
from app.text.document import Block, SourceText

LIMITS = ParseLimits(timeout_seconds=60)
_STYLES = getSampleStyleSheet()


async def parse(
    folder: Path, name: str, content: bytes | str, media_type: str = "", limits: ParseLimits = LIMITS
) -> SourceText:
    """Stores `content` under a name that says nothing, as the blob store does, and parses it as `name`."""
    path = folder / "original"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    async with aclosing(FileParser()) as parser:
        source = await parser.parse(path, name, media_type, limits)
    for block in source.blocks:
        assert source.text[block.char_start : block.char_end] == block.text
    return source


def shown(source: SourceText) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in source.blocks]


def body(source: SourceText) -> list[Block]:
    return [block for block in source.blocks if block.kind != "heading"]


def pdf(*story: Flowable | str, header: str | None = None) -> bytes:
    """A PDF of flowables; a string is a heading if it starts with `#`, `---` is a page break."""
    flow: list[Flowable] = []
    for item in story:
        if not isinstance(item, str):
            flow.append(item)
        elif item == "---":
            flow.append(PageBreak())
        elif item.startswith("#"):
            flow.append(Paragraph(item.lstrip("# "), _STYLES[f"Heading{item.count('#')}"]))
        else:
            flow.append(Paragraph(item, _STYLES["Normal"]))

    def running(canvas: Canvas, document: SimpleDocTemplate) -> None:
        if header is not None:
            canvas.drawString(50, 820, header)
            canvas.drawString(280, 20, f"Page {document.page}")

    buffer = io.BytesIO()
    SimpleDocTemplate(buffer, pagesize=A4).build(flow, onFirstPage=running, onLaterPages=running)
    return buffer.getvalue()


def encrypted_pdf() -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, encrypt=StandardEncryption("open sesame", strength=128))
    canvas.drawString(50, 800, "secret")
    canvas.save()
    return buffer.getvalue()


def scanned_pdf() -> bytes:
    """A page that is only a drawing, as a scanner's picture is."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.rect(100, 100, 300, 500, fill=1)
    canvas.save()
    return buffer.getvalue()


def empty_pdf() -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def docx_bytes(*paragraphs: str) -> bytes:
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def xlsx_bytes(*rows: list[object], sheet: str = "Sheet") -> bytes:
    book = openpyxl.Workbook()
    book.active.title = sheet
    for row in rows:
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def with_part(office_file: bytes, part: str, content: bytes) -> bytes:
    """The same Office file with one of its parts replaced."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(office_file)) as source,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            target.writestr(name, content if name == part else source.read(name))
    return buffer.getvalue()


def ole_file(marker: str) -> bytes:
    """The outline of an OLE container, which both old Office files and encrypted new ones are."""
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + marker.encode("utf-16-le") + bytes(600)
