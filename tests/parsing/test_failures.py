"""What cannot be read ends as a failure with a code and a sentence; nothing hangs and nothing takes the caller down."""

import asyncio
import io
import os
import subprocess
import sys
import zipfile
import zlib
from contextlib import aclosing, suppress
from pathlib import Path

import psutil
import pytest

from app.parsing.errors import ParseFailed, UnsupportedFormat
from app.parsing.job import ParseLimits
from app.parsing.service import FileParser
from app.text.passages import split_passages
from tests.parsing.samples import (
    LIMITS,
    docx_bytes,
    empty_pdf,
    encrypted_pdf,
    ole_file,
    parse,
    pdf,
    scanned_pdf,
    with_part,
    xlsx_bytes,
)

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


async def failure_of(folder: Path, name: str, content: bytes, limits: ParseLimits | None = None) -> ParseFailed:
    with pytest.raises(ParseFailed) as caught:
        await parse(folder, name, content, limits=limits or ParseLimits(timeout_seconds=60))
    return caught.value


@pytest.mark.parametrize(
    ("name", "content", "code", "told"),
    [
        ("a.txt", b"", "empty_document", "empty"),
        ("a.pdf", b"", "empty_document", "empty"),
        ("a.txt", b" \r\n\t\xe3\x80\x80 \n", "blank_document", "no text"),
        ("a.json", b"\n", "blank_document", "no text"),
        ("a.csv", b",,\n,,\n", "blank_document", "no text"),
        ("a.html", b"<html><script>x()</script><p> </p></html>", "blank_document", "no text"),
        ("a.docx", docx_bytes(" "), "blank_document", "no text"),
        ("a.pdf", empty_pdf(), "blank_document", "empty pages"),
        ("a.pdf", scanned_pdf(), "no_text_layer", "OCR"),
        ("a.pdf", encrypted_pdf(), "encrypted_document", "password"),
        ("a.docx", ole_file("EncryptedPackage"), "encrypted_document", "password"),
        ("a.pdf", pdf("Hello")[:700], "broken_document", "damaged"),
        ("a.pdf", b"%PDF-1.7\n" + bytes(range(256)) * 20, "broken_document", "damaged"),
        ("a.docx", docx_bytes("Hello")[:9000], "broken_document", "damaged"),
        ("a.docx", with_part(docx_bytes("Hello"), "word/document.xml", b"<broken"), "broken_document", "damaged"),
        ("a.txt", os.urandom(4000), "undecodable_text", "UTF-8"),
        ("a.txt", bytes(4000), "undecodable_text", "UTF-8"),
    ],
)  # fmt: skip
async def test_bad_input_is_told_by_code_and_sentence(
    tmp_path: Path, name: str, content: bytes, code: str, told: str
) -> None:
    failure = await failure_of(tmp_path, name, content)
    assert failure.reason == code
    assert told in failure.detail
    assert failure.detail.endswith(".")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.docx", xlsx_bytes(["a"]), "an Excel workbook"),
        ("a.docx", ole_file("WordDocument"), "old Office format"),
        ("a.pdf", b"MZ\x90\x00" + bytes(100), "a Windows program"),
    ],
)
async def test_a_wrong_name_is_told_with_what_the_file_is(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    failure = await failure_of(tmp_path, name, content)
    assert isinstance(failure, UnsupportedFormat)
    assert told in failure.detail


async def test_a_zip_archive_named_docx_is_told(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("notes.txt", "hello")
    failure = await failure_of(tmp_path, "a.docx", buffer.getvalue())
    assert (failure.reason, "ZIP archive" in failure.detail) == ("unsupported_media_type", True)


def billion_laughs(opening: str, closing: str) -> bytes:
    entities = '<!ENTITY e0 "lollollollollol">' + "".join(
        f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10)
    )
    return f'<?xml version="1.0"?><!DOCTYPE x [{entities}]>{opening}&e9;{closing}'.encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", b"<div>" * 100_000 + b"deep"),
        ("a.html", b"<b>" * 100_000 + b"deep"),
        ("a.json", b"[" * 100_000 + b"]" * 100_000),
        ("a.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        (
            "a.docx",
            with_part(
                docx_bytes("x"),
                "word/document.xml",
                billion_laughs(f'<w:document xmlns:w="{_WORD}"><w:body><w:p><w:r><w:t>', "</w:t></w:r></w:p></w:body></w:document>"),
            ),
        ),
        (
            "a.xlsx",
            with_part(
                xlsx_bytes(["x"]),
                "xl/worksheets/sheet1.xml",
                billion_laughs(
                    f'<worksheet xmlns="{_SHEET}"><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>',
                    "</t></is></c></row></sheetData></worksheet>",
                ),
            ),
        ),
        (
            "a.docx",
            with_part(
                docx_bytes("x"),
                "word/document.xml",
                f'<w:document xmlns:w="{_WORD}"><w:body>'.encode()
                + b"<w:sdt><w:sdtContent>" * 50_000
                + b"</w:sdtContent></w:sdt>" * 50_000
                + b"</w:body></w:document>",
            ),
        ),
    ],
    ids=["deep html", "deep inline html", "deep json list", "deep json object", "entities docx", "entities xlsx", "deep docx"],
)  # fmt: skip
async def test_nesting_and_entity_bombs_end_as_broken(tmp_path: Path, name: str, content: bytes) -> None:
    assert (await failure_of(tmp_path, name, content)).reason == "broken_document"


async def test_an_external_entity_reads_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    xml = (
        f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file://{secret}">]>'
        f'<w:document xmlns:w="{_WORD}"><w:body><w:p><w:r><w:t>A&e;</w:t></w:r></w:p></w:body></w:document>'
    )
    source = await parse(tmp_path, "a.docx", with_part(docx_bytes("x"), "word/document.xml", xml.encode()))
    assert source.text == "A"


@pytest.mark.parametrize(("name", "part"), [("a.docx", "word/document.xml"), ("a.xlsx", "xl/worksheets/sheet1.xml")])
async def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, name: str, part: str) -> None:
    original = docx_bytes("x") if name == "a.docx" else xlsx_bytes(["x"])
    failure = await failure_of(tmp_path, name, with_part(original, part, bytes(200_000_000)))
    assert failure.reason == "parse_memory"
    assert "unpacks to 200," in failure.detail


def flate_bomb(expanded: int) -> bytes:
    stream = zlib.compress(b"(a) Tj " * (expanded // 7), 9)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(stream), stream),
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj%bendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return out + b"xref\n0 5\n0000000000 65535 f \n%btrailer<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(out),
    )


async def test_a_pdf_that_expands_beyond_the_memory_limit_fails_alone(tmp_path: Path) -> None:
    limits = ParseLimits(timeout_seconds=60, memory_bytes=300_000_000)
    failure = await failure_of(tmp_path, "a.pdf", flate_bomb(400_000_000), limits)
    assert failure.reason in ("parse_memory", "broken_document", "no_text_layer")
    assert (await parse(tmp_path, "b.txt", "still here")).text == "still here"


async def test_too_little_memory_is_told_with_the_limit(tmp_path: Path) -> None:
    limits = ParseLimits(timeout_seconds=60, memory_bytes=150_000_000)
    failure = await failure_of(tmp_path, "a.txt", b"word " * 20_000_000, limits)
    assert failure.reason == "parse_memory"
    assert "150 MB" in failure.detail


async def test_too_much_text_and_too_many_pages_are_told_with_the_limits(tmp_path: Path) -> None:
    limits = ParseLimits(timeout_seconds=60, max_text_chars=1_000, max_pages=2)
    assert (await failure_of(tmp_path, "a.txt", b"word " * 300, limits)).reason == "document_too_long"
    failure = await failure_of(tmp_path, "a.pdf", pdf("1", "---", "2", "---", "3"), limits)
    assert (failure.reason, failure.facts["pages"]) == ("document_too_long", 3)


def children() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if "app.parsing.host" in child.cmdline() and child.parent() != psutil.Process():
                found.append(child)
    return found


async def first_child() -> psutil.Process:
    while not (running := children()):  # noqa: ASYNC110 - another process sets no event of ours
        await asyncio.sleep(0.01)
    return running[0]


SLOW_CSV = b"a,b\n" + b'"x y z",2\n' * 400_000


async def test_a_parse_over_its_time_is_killed(tmp_path: Path) -> None:
    failure = await failure_of(tmp_path, "a.csv", SLOW_CSV, ParseLimits(timeout_seconds=0.3))
    assert failure.reason == "parse_timeout"
    assert "0.3 seconds" in failure.detail
    assert children() == []


async def test_cancelling_the_caller_kills_the_child(tmp_path: Path) -> None:
    task = asyncio.create_task(parse(tmp_path, "a.csv", SLOW_CSV))
    await first_child()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() == []


async def test_a_killed_child_is_told_as_memory_and_the_next_parse_works(tmp_path: Path) -> None:
    task = asyncio.create_task(parse(tmp_path, "a.csv", SLOW_CSV))
    (await first_child()).kill()
    with pytest.raises(ParseFailed) as caught:
        await task
    assert caught.value.reason == "parse_memory"
    assert (await parse(tmp_path, "b.txt", "fine")).text == "fine"


async def test_a_batch_of_bad_and_good_files_fails_and_reads_each_for_itself(tmp_path: Path) -> None:
    batch = {
        "empty.txt": b"",
        "spaces.txt": b"   ",
        "scan.pdf": scanned_pdf(),
        "one.txt": b"One is good.",
        "two.pdf": pdf("Two is good."),
        "three.docx": docx_bytes("Three is good."),
    }
    results = []
    for name, content in batch.items():
        folder = tmp_path / name
        folder.mkdir()
        results.append(parse(folder, name, content))
    outcomes = await asyncio.gather(*results, return_exceptions=True)
    told = [each.reason if isinstance(each, ParseFailed) else each.text for each in outcomes]  # type: ignore[union-attr]
    assert told == [
        "empty_document", "blank_document", "no_text_layer", "One is good.", "Two is good.", "Three is good.",
    ]  # fmt: skip


async def test_a_line_of_200_kilobytes_is_parsed_and_cut_into_passages(tmp_path: Path) -> None:
    source = await parse(tmp_path, "a.txt", b"x" * 200_000)
    assert max(passage.tokens for passage in split_passages(source)) <= 400


def test_the_calling_process_imports_no_parser_and_gives_the_child_no_secret() -> None:
    script = (
        "import sys, app.parsing.service as service\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'lxml', 'docx', 'pptx', 'openpyxl', 'pypdfium2', 'markdown_it'}, loaded\n"
        "assert not any('SECRET' in name for name in service._environment())"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ | {"SECRET_KEY": "x"})


async def test_a_host_that_ended_fails_what_ran_under_it_and_is_started_again(tmp_path: Path) -> None:
    slow, fine = tmp_path / "slow.csv", tmp_path / "fine.txt"
    slow.write_bytes(SLOW_CSV)
    fine.write_text("fine")
    async with aclosing(FileParser()) as parser:
        task = asyncio.create_task(parser.parse(slow, "a.csv", "", LIMITS))
        child = await first_child()
        host = child.parent()
        assert host is not None
        host.kill()
        with pytest.raises(RuntimeError, match="has ended"):
            await task
        child.kill()
        assert (await parser.parse(fine, "b.txt", "", LIMITS)).text == "fine"


async def test_closing_the_parser_takes_its_children_along(tmp_path: Path) -> None:
    slow = tmp_path / "slow.csv"
    slow.write_bytes(SLOW_CSV)
    parser = FileParser()
    task = asyncio.create_task(parser.parse(slow, "a.csv", "", LIMITS))
    child = await first_child()
    await parser.aclose()
    with pytest.raises((RuntimeError, ParseFailed)):
        await task
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running()
