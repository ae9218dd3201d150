"""PDF: pages, headings by size, joined lines and words, running headers, and text that spans pages."""

from pathlib import Path

from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.pdfmetrics import registerFont
from reportlab.platypus import Paragraph, Spacer, Table

from app.parsing.cleaning import fold_glyph_forms
from app.text.passages import split_passages
from tests.parsing.samples import body, parse, pdf, shown

SENTENCE = "The company was founded in 1998 by Ada Smith and her brother in Berlin. "


async def test_larger_lines_are_headings_and_lines_of_a_paragraph_are_joined(tmp_path: Path) -> None:
    content = pdf(
        "# Report", SENTENCE * 8, "A second paragraph.", "## Details", "Few details.", "---", "# Results", "Good."
    )
    source = await parse(tmp_path, "a.pdf", content)
    assert source.page_count == 2
    assert shown(source) == [
        ("heading", "Report"),
        ("paragraph", (SENTENCE * 8).strip()),
        ("paragraph", "A second paragraph."),
        ("heading", "Details"),
        ("paragraph", "Few details."),
        ("heading", "Results"),
        ("paragraph", "Good."),
    ]
    assert [block.page for block in body(source)] == [1, 1, 1, 2]
    assert [block.heading_path for block in body(source)] == [
        ("Report",),
        ("Report",),
        ("Report", "Details"),
        ("Results",),
    ]


async def test_running_headers_and_page_numbers_are_dropped(tmp_path: Path) -> None:
    content = pdf("First page.", "---", "Second page.", "---", "Third page.", header="ACME Confidential")
    source = await parse(tmp_path, "a.pdf", content)
    assert [(block.text, block.page) for block in source.blocks] == [
        ("First page.", 1), ("Second page.", 2), ("Third page.", 3),
    ]  # fmt: skip


async def test_headings_that_differ_by_number_only_are_no_running_headers(tmp_path: Path) -> None:
    pages = [item for number in range(1, 5) for item in (f"# Step {number}", f"Turn screw {number}.", "---")]
    source = await parse(tmp_path, "a.pdf", pdf(*pages))
    assert [block.heading_path for block in body(source)] == [(f"Step {number}",) for number in range(1, 5)]


async def test_entries_of_a_table_of_contents_are_no_headings(tmp_path: Path) -> None:
    content = pdf(
        "# Contents", "<b>1 Introduction . . . . . . . . . . . . 5</b>", "2 Terms .............. 9", "Body. " * 60
    )
    source = await parse(tmp_path, "a.pdf", content)
    assert [block.text for block in body(source)][:2] == ["1 Introduction … 5", "2 Terms … 9"]


async def test_a_sentence_over_a_page_break_is_one_sentence_on_two_pages(tmp_path: Path) -> None:
    content = pdf("The sentence begins on this page and", "---", "ends on the next one. Done here.")
    source = await parse(tmp_path, "a.pdf", content)
    assert source.text == "The sentence begins on this page and ends on the next one. Done here."
    (passage,) = split_passages(source)
    assert (passage.page_start, passage.page_end, passage.sentence_count) == (1, 2, 2)


async def test_words_divided_at_a_line_end_are_joined(tmp_path: Path) -> None:
    source = await parse(tmp_path, "a.pdf", pdf("This is an exam-<br/>ple of a well-known Anglo-<br/>Saxon word."))
    assert source.text == "This is an example of a well-known Anglo-Saxon word."


async def test_chinese_lines_are_joined_without_spaces(tmp_path: Path) -> None:
    registerFont(UnicodeCIDFont("STSong-Light"))
    style = ParagraphStyle("zh", fontName="STSong-Light", wordWrap="CJK")
    text = "阿里巴巴由马云在杭州创立，总部位于浙江省杭州市余杭区，业务遍及全球多个国家和地区。" * 6
    source = await parse(tmp_path, "a.pdf", pdf(Paragraph(text, style)))
    assert source.text == text


async def test_a_gap_between_lines_ends_a_paragraph_and_table_rows_stay_lines(tmp_path: Path) -> None:
    table = Table([["name", "town"], ["Ada", "Berlin"], ["Bob", "Bonn"]])
    source = await parse(tmp_path, "a.pdf", pdf("Above it", Spacer(1, 40), "below it.", table))
    assert [block.text for block in source.blocks][:2] == ["Above it", "below it."]
    assert "Ada Berlin" in source.text


def test_ligatures_and_radicals_of_fonts_become_letters() -> None:
    assert fold_glyph_forms("eﬃcient ﬁle ⼈⼝") == "efficient file 人口"
