"""Word, PowerPoint and Excel: order, headings, lists, tables, pages and notes."""

import datetime
import io
from pathlib import Path

import docx
import openpyxl
from docx.document import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from pptx import Presentation
from pptx.util import Inches

from tests.parsing.samples import parse, shown, xlsx_bytes


def saved(document: object) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)  # type: ignore[attr-defined]  # all three libraries have it
    return buffer.getvalue()


def word_with_everything() -> Document:
    document = docx.Document()
    document.add_heading("Pump manual", 0)
    document.add_heading("Start", 1)
    document.add_paragraph("Press the button.")
    document.add_paragraph("red", style="List Bullet")
    document.add_paragraph("green", style="List Bullet")
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ["part", "price", "seal", "3"], strict=True):
        cell.text = text
    document.add_heading("Care", 2)
    document.add_paragraph("Oil it.\nDaily.")
    return document


async def test_word_keeps_document_order_and_heading_levels(tmp_path: Path) -> None:
    source = await parse(tmp_path, "a.docx", saved(word_with_everything()))
    assert source.title == "Pump manual"
    assert shown(source) == [
        ("heading", "Pump manual"),
        ("heading", "Start"),
        ("paragraph", "Press the button."),
        ("list", "- red\n- green"),
        ("table", "part | price\nseal | 3"),
        ("heading", "Care"),
        ("paragraph", "Oil it.\nDaily."),
    ]
    assert source.blocks[-1].heading_path == ("Pump manual", "Start", "Care")
    assert source.page_count is None


async def test_word_keeps_inserted_text_and_content_controls_and_drops_deleted_text(tmp_path: Path) -> None:
    document = docx.Document()
    body = document.element.body
    body.insert(0, parse_xml(
        f"<w:sdt {nsdecls('w')}><w:sdtContent><w:p><w:r><w:t>In a control.</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    ))  # fmt: skip
    body.insert(1, parse_xml(
        f"<w:p {nsdecls('w')}><w:r><w:t xml:space='preserve'>Kept </w:t></w:r>"
        "<w:ins><w:r><w:t>inserted</w:t></w:r></w:ins><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del></w:p>"
    ))  # fmt: skip
    assert (await parse(tmp_path, "a.docx", saved(document))).text == "In a control.\n\nKept inserted"


async def test_word_footnotes_follow_the_text(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Claim", 1)
    document.add_paragraph("It is so.")
    notes = f"<w:footnotes {nsdecls('w')}><w:footnote w:id='1'><w:p><w:r><w:t>See Smith.</w:t></w:r></w:p></w:footnote></w:footnotes>"
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    part = Part(PackURI("/word/footnotes.xml"), kind, notes.encode(), document.part.package)
    document.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES)
    source = await parse(tmp_path, "a.docx", saved(document))
    assert (source.blocks[-1].text, source.blocks[-1].heading_path) == ("- See Smith.", ())


async def test_word_headings_of_a_chinese_template_are_headings(tmp_path: Path) -> None:
    document = docx.Document()
    style = document.styles.add_style("标题 1", 1)
    document.add_paragraph("第一章", style=style)
    document.add_paragraph("正文。")
    source = await parse(tmp_path, "a.docx", saved(document))
    assert source.blocks[1].heading_path == ("第一章",)


async def test_slides_are_pages_with_titles_as_headings_and_notes_below(tmp_path: Path) -> None:
    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "Results"
    first.placeholders[1].text = "sales rose\ncosts fell"
    first.notes_slide.notes_text_frame.text = "Mention the new shop."
    second = deck.slides.add_slide(deck.slide_layouts[6])
    low = second.shapes.add_textbox(Inches(1), Inches(4), Inches(2), Inches(1))
    low.text_frame.text = "below"
    high = second.shapes.add_textbox(Inches(1), Inches(1), Inches(2), Inches(1))
    high.text_frame.text = "above"
    table = second.shapes.add_table(2, 2, Inches(1), Inches(5), Inches(4), Inches(1)).table
    for index, text in enumerate(["part", "price", "seal", "3"]):
        table.cell(index // 2, index % 2).text = text
    source = await parse(tmp_path, "a.pptx", saved(deck))
    assert source.page_count == 2
    assert [(block.kind, block.text, block.page) for block in source.blocks] == [
        ("heading", "Results", 1),
        ("list", "- sales rose\n- costs fell", 1),
        ("paragraph", "Mention the new shop.", 1),
        ("paragraph", "above", 2),
        ("paragraph", "below", 2),
        ("table", "part | price\nseal | 3", 2),
    ]
    assert source.blocks[-1].heading_path == ()


async def test_sheets_are_headings_and_pages_and_cells_read_well(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    people = book.active
    people.title = "People"
    people.append(["name", "born", "score", "seen", "member"])
    people.append(["Ada", datetime.datetime(1815, 12, 10), 0.1 + 0.2, datetime.datetime(2024, 5, 1, 9, 30), True])  # noqa: DTZ001 - cells have no zone
    people.append([None] * 5)
    people.append(["张伟", datetime.date(2000, 1, 2), 3])
    prices = book.create_sheet("Prices")
    prices.append(["part", "price"])
    prices.append(["seal", 3])
    source = await parse(tmp_path, "a.xlsx", saved(book))
    assert source.page_count == 2
    assert [(block.text, block.page, block.heading_path) for block in source.blocks if block.kind == "table"] == [
        (
            "name | born | score | seen | member\n"
            "Ada | 1815-12-10 | 0.3 | 2024-05-01 09:30:00 | TRUE\n"
            "张伟 | 2000-01-02 | 3",
            1,
            ("People",),
        ),
        ("part | price\nseal | 3", 2, ("Prices",)),
    ]


async def test_a_long_sheet_repeats_its_header(tmp_path: Path) -> None:
    rows = [[f"part {number}", number] for number in range(300)]
    source = await parse(tmp_path, "a.xlsx", xlsx_bytes(["part", "price"], *rows))
    tables = [block.text for block in source.blocks if block.kind == "table"]
    assert len(tables) > 5
    assert all(text.startswith("part | price\npart ") for text in tables)


async def test_a_cell_at_the_far_end_of_a_sheet_does_not_fill_the_text_with_separators(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active["A1"] = "near"
    book.active["XFD9000"] = "far"
    source = await parse(tmp_path, "a.xlsx", saved(book))
    assert source.blocks[-1].text == "near\nfar"
