"""Which format a file is, and how clearly it is told when it is none that is accepted."""

import pytest

from app.errors import UnsupportedMediaType
from app.parsing.errors import ParseFailed
from app.parsing.formats import ACCEPTED, detect_format
from tests.parsing.samples import docx_bytes, ole_file, pdf


@pytest.mark.parametrize(
    ("name", "media_type", "head", "expected"),
    [
        ("a.txt", "", b"hello", "txt"),
        ("docs/a/README.MD", "application/octet-stream", b"# hi", "md"),
        ("C:\\files\\data.csv", "application/vnd.ms-excel", b"a;b", "csv"),
        ("report.pdf", "text/plain", b"%PDF-1.7", "pdf"),
        ("report.pdf", None, b"\r\n\r\n%PDF-1.7", "pdf"),
        ("README", "text/markdown; charset=utf-8", b"# hi", "md"),
        ("download", "application/pdf", b"%PDF-1.7", "pdf"),
        ("download", "", b"%PDF-1.7", "pdf"),
        ("notes.unknown", "text/plain", b"hello", "txt"),
        ("a.jsonl", "", b"{}", "json"),
        ("Mzungu.txt", "", b"MZ is how this text begins", "txt"),
        ("empty.docx", "", b"", "docx"),
    ],
)
def test_name_then_type_then_bytes_decide(name: str, media_type: str | None, head: bytes, expected: str) -> None:
    assert detect_format(name, media_type, head).name == expected


@pytest.mark.parametrize(
    ("name", "media_type", "head", "told"),
    [
        ("setup.exe", "application/octet-stream", b"MZ\x90\x00", "type .exe"),
        ("setup.pdf", "application/pdf", b"MZ\x90\x00" + bytes(60), "a Windows program"),
        ("report.txt", "text/plain", pdf("Hello")[:4096], "a PDF"),
        ("report.txt", "text/plain", docx_bytes("Hello")[:4096], "a Word document"),
        ("picture.pdf", "", b"\x89PNG\r\n\x1a\n" + bytes(20), "a PNG picture"),
        ("picture.png", "image/png", b"\x89PNG\r\n\x1a\n", "type .png"),
        ("letter.doc", "application/msword", ole_file("WordDocument"), "save the document as .docx"),
        ("letter.txt", "", ole_file("WordDocument"), "Office document"),
        ("note.pdf", "", b"just some words, no PDF at all", "plain text"),
        ("note.docx", "", b"just some words", "plain text"),
        ("blob", "application/octet-stream", b"\x00\x01", "application/octet-stream"),
        ("blob", None, b"words", "unknown"),
    ],
)
def test_what_is_not_accepted_is_told_with_the_list(name: str, media_type: str | None, head: bytes, told: str) -> None:
    with pytest.raises(UnsupportedMediaType) as failure:
        detect_format(name, media_type, head)
    assert failure.value.reason == "unsupported_media_type"
    assert told in failure.value.detail
    assert all(extension in failure.value.detail for each in ACCEPTED for extension in each.extensions)
    assert isinstance(failure.value, ParseFailed)
