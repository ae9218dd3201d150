"""PowerPoint: each slide is a page, its title a heading; text, tables and speaker notes in order below it."""

from collections.abc import Iterable
from typing import Any

from pptx import Presentation
from pptx.util import Length

from app.parsing.builder import SourceBuilder
from app.parsing.cleaning import one_line
from app.parsing.job import ParseJob
from app.parsing.page_limit import check_pages
from app.parsing.tables import add_table
from app.parsing.zip_check import check_office_file


def parse(job: ParseJob, out: SourceBuilder) -> None:
    check_office_file(job.path, "pptx")
    slides = Presentation(str(job.path))
    out.title = slides.core_properties.title
    out.page_count = len(slides.slides)
    check_pages(out.page_count, job.limits, "slides")
    for number, slide in enumerate(slides.slides, start=1):
        title = slide.shapes.title
        out.close_headings(1)
        if title is not None and title.has_text_frame:
            out.heading(title.text_frame.text, 1, number)
        _add_shapes(out, slide.shapes, number, skipped=title.shape_id if title is not None else None)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            out.block("paragraph", slide.notes_slide.notes_text_frame.text, number)


def _add_shapes(out: SourceBuilder, shapes: Iterable[Any], page: int, *, skipped: int | None) -> None:
    """Shapes from top to bottom and left to right, as they are read; groups are looked into."""
    stack = _reading_order(shapes)
    while stack:
        shape = stack.pop(0)
        if shape.shape_id == skipped:
            continue
        if hasattr(shape, "shapes"):
            stack[:0] = _reading_order(shape.shapes)
        elif getattr(shape, "has_table", False):
            add_table(out, ([cell.text for cell in row.cells] for row in shape.table.rows), page)
        elif shape.has_text_frame:
            _add_text(out, shape.text_frame, page)


def _reading_order(shapes: Iterable[Any]) -> list[Any]:
    return sorted(shapes, key=lambda shape: (_or_zero(shape.top), _or_zero(shape.left)))


def _or_zero(length: Length | None) -> int:
    return 0 if length is None else int(length)


def _add_text(out: SourceBuilder, frame: Any, page: int) -> None:
    paragraphs = [(paragraph.level, paragraph.text) for paragraph in frame.paragraphs if paragraph.text.strip()]
    if len(paragraphs) == 1:
        out.block("paragraph", paragraphs[0][1], page)
    elif paragraphs:
        lines = (f"{'  ' * level}- {one_line(text)}" for level, text in paragraphs)
        out.block("list", "\n".join(lines), page)
