"""Excel workbooks: each sheet a heading with its rows as table blocks below; sheets count as pages."""

import datetime
from collections.abc import Iterable, Iterator
from typing import Any

import openpyxl

from app.parsing.builder import SourceBuilder
from app.parsing.job import ParseJob
from app.parsing.page_limit import check_pages
from app.parsing.tables import add_table
from app.parsing.zip_check import check_office_file


def parse(job: ParseJob, out: SourceBuilder) -> None:
    check_office_file(job.path, "xlsx")
    # As an open file: openpyxl refuses paths without its own extension, and stored originals have none.
    with job.path.open("rb") as file:
        _add_sheets(job, openpyxl.load_workbook(file, read_only=True, data_only=True), out)


def _add_sheets(job: ParseJob, book: openpyxl.Workbook, out: SourceBuilder) -> None:
    check_pages(len(book.sheetnames), job.limits, "sheets")
    out.title = book.properties.title
    out.page_count = len(book.sheetnames)
    for number, sheet in enumerate(book.worksheets, start=1):
        # The stored dimension is often wrong, and rows beyond it would be dropped.
        sheet.reset_dimensions()
        out.heading(sheet.title, 1, number)
        out.close_headings(2)
        add_table(out, _rows(sheet.iter_rows(values_only=True)), number)


def _rows(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[str]]:
    for row in rows:
        yield [_shown(value) for value in row]


def _shown(value: Any) -> str:
    """A cell as a reader would write it: no float noise, dates without a midnight."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, datetime.datetime):
        is_date = value.time() == datetime.time()
        return value.date().isoformat() if is_date else value.isoformat(sep=" ", timespec="seconds")
    return str(value)
