"""Files made to harm whoever reads them: each ends as text or as a failure with a code, and the parser lives on."""

import io
import os
import random
import struct
import zipfile
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from app.parsing.errors import ParseFailed
from app.parsing.job import ParseLimits
from app.parsing.service import FileParser
from tests.parsing.samples import docx_bytes, parse, pdf, with_part, xlsx_bytes

_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
# `make fuzz` tries more, from other seeds.
MUTATIONS = int(os.environ.get("TRELLIS_FUZZ", "12")) // 3
SEED = int(os.environ.get("TRELLIS_FUZZ_SEED", "1"))
SMALL = ParseLimits(timeout_seconds=20, memory_bytes=600_000_000, max_text_chars=1_000_000, max_pages=1000)


def raw_pdf(*objects: bytes) -> bytes:
    """A PDF of these objects, numbered from 1; the first is its catalog."""
    out, offsets = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj%bendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


def page(contents: bytes, resources: bytes = b"<<>>", *others: bytes) -> bytes:
    stream = b"<</Length %d>>stream\n%b\nendstream" % (len(contents), contents)
    return raw_pdf(
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources %b>>" % resources, stream, *others,
    )  # fmt: skip


def sheet(rows: str) -> bytes:
    xml = f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData></worksheet>'
    return with_part(xlsx_bytes(["x"]), "xl/worksheets/sheet1.xml", xml.encode())


def lying_zip() -> bytes:
    """A Word file whose directory says that its largest part is small."""
    honest = with_part(docx_bytes("x"), "word/document.xml", b" " * 80_000_000)
    said, small = struct.pack("<I", 80_000_000), struct.pack("<I", 1000)
    assert said in honest
    return honest.replace(said, small)


NESTED_FORMS = page(
    b"/F Do", b"<</XObject<</F 5 0 R>>>>",
    b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F 5 0 R>>>>/Length 10>>stream\n/F Do /F Do\nendstream",
)  # fmt: skip
FILES: Sequence[tuple[str, str, bytes, set[str]]] = [
    ("pages that are said to be two thousand million", "a.pdf",
     raw_pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 2147483647>>"), {"document_too_long", "blank_document", "broken_document"}),
    ("a page tree that is its own child", "a.pdf",
     raw_pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>"), {"blank_document", "broken_document"}),
    ("arrays in arrays", "a.pdf",
     raw_pdf(b"<</Type/Catalog/Pages 2 0 R/X " + b"[" * 200_000 + b"]" * 200_000 + b">>"), {"blank_document", "broken_document"}),
    ("a form that draws itself twice", "a.pdf", NESTED_FORMS, {"blank_document", "broken_document", "no_text_layer"}),
    ("a row far below the last one", "a.xlsx", sheet('<row r="2000000000"><c r="A2000000000"><v>1</v></c></row>'), {"parse_timeout", "text"}),
    ("a cell far to the right in every row", "a.xlsx",
     sheet("".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 2000))), {"parse_timeout", "text"}),
    ("a container that lies about sizes", "a.docx", lying_zip(), {"broken_document", "parse_memory"}),
    ("a line of 60 MB", "a.csv", b"a,b\n" + b"x" * 60_000_000, {"document_too_long", "parse_memory"}),
    ("a record of ten million cells", "a.csv", b"a," * 10_000_000, {"document_too_long", "parse_memory", "parse_timeout", "text"}),
    ("a quote that is never closed", "a.csv", b'a,b\n"' + b"x,y\n" * 5_000_000, {"document_too_long", "parse_memory"}),
    ("brackets without end", "a.md", b"[" * 100_000, {"parse_timeout", "text", "broken_document"}),
    ("stars without end", "a.md", b"*a " * 50_000 + b"**" * 50_000, {"parse_timeout", "text", "broken_document"}),
    ("a number of a million digits", "a.json", b'{"a": ' + b"9" * 1_000_000 + b"}", {"broken_document", "text", "document_too_long"}),
    ("attributes without end", "a.html", b"<p " + b'a="b" ' * 500_000 + b">text</p>", {"text", "parse_timeout", "blank_document", "broken_document"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "codes"), [each[1:] for each in FILES], ids=[each[0] for each in FILES])
async def test_a_hostile_file_ends_alone(tmp_path: Path, name: str, content: bytes, codes: set[str]) -> None:
    (tmp_path / "hostile").mkdir()
    limits = ParseLimits(timeout_seconds=6, memory_bytes=600_000_000, max_text_chars=1_000_000, max_pages=1000)
    # On a busy machine any of them may take too long, which ends it as well.
    assert await outcome(tmp_path / "hostile", name, content, limits) in codes | {"parse_timeout", "parse_memory"}


async def outcome(folder: Path, name: str, content: bytes, limits: ParseLimits) -> str:
    """`text`, or the code of the failure; the same parser then reads something else."""
    hostile, fine = folder / "hostile", folder / "fine"
    hostile.write_bytes(content)
    fine.write_text("fine")
    async with aclosing(FileParser()) as parser:
        try:
            await parser.parse(hostile, name, "", limits)
            found = "text"
        except ParseFailed as failure:
            found = failure.reason
        assert (await parser.parse(fine, "b.txt", "", limits)).text == "fine"
    return found


async def test_scripts_and_files_in_a_pdf_are_neither_run_nor_read(tmp_path: Path) -> None:
    script = b'<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.launchURL\\("http://127.0.0.1:1"\\))>>>>'
    content = page(
        b"BT /F 12 Tf 20 100 Td (Plain words) Tj ET", b"<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    )
    found = await parse(tmp_path, "a.pdf", content.replace(b"<</Type/Catalog/Pages 2 0 R>>", script))
    assert found.text == "Plain words"


def samples() -> dict[str, bytes]:
    return {
        "a.pdf": pdf("# Heading", "Some words.", "---", "Others."),
        "a.docx": docx_bytes("One", "Two"),
        "a.xlsx": xlsx_bytes(["a", "b"], [1, 2]),
        "a.html": b"<html><body><h1>A</h1><table><tr><td>1</td></tr></table><p>text</p></body></html>",
        "a.md": b"# A\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        "a.json": b'{"a": [1, 2, {"b": "text"}], "c": null}',
        "a.csv": b'a,b\n1,"two, three"\n',
    }  # fmt: skip


def mutated(content: bytes, name: str, chance: random.Random) -> bytes:
    """Some bytes changed, cut out or repeated; inside of an Office file, in one of its parts."""
    if content[:2] == b"PK" and chance.random() < 0.8:
        part = "word/document.xml" if name.endswith(".docx") else "xl/worksheets/sheet1.xml"
        return with_part(content, part, _changed(_part(content, part), chance))
    return _changed(content, chance)


def _part(content: bytes, part: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(part)


def _changed(content: bytes, chance: random.Random) -> bytes:
    out = bytearray(content)
    for _ in range(chance.randint(1, 12)):
        start = chance.randrange(len(out))
        end = min(len(out), start + chance.randint(1, 40))
        match chance.randrange(4):
            case 0:
                out[start:end] = chance.randbytes(end - start)
            case 1:
                del out[start : end if len(out) > 50 else start]
            case 2:
                out[start:start] = out[start:end] * chance.randint(1, 500)
            case _:
                out[start] ^= 1 << chance.randrange(8)
    return bytes(out)


@pytest.mark.parametrize("name", samples())
async def test_what_was_damaged_at_random_ends_as_text_or_with_a_code(tmp_path: Path, name: str) -> None:
    chance = random.Random(f"{SEED} {name}")
    content = samples()[name]
    path = tmp_path / "original"
    async with aclosing(FileParser()) as parser:
        for number in range(MUTATIONS):
            path.write_bytes(mutated(content, name, chance))
            try:
                await parser.parse(path, name, "", SMALL)
            except ParseFailed as failure:
                assert failure.detail, (number, failure.reason)  # noqa: PT017 - it may also succeed
