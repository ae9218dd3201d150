"""Decides which format a file is from its name, declared type and first bytes, and names those accepted."""

from dataclasses import dataclass
from email.message import Message
from pathlib import PurePosixPath
from typing import Final, Literal

from app.parsing.errors import UnsupportedFormat

FormatName = Literal["txt", "md", "html", "pdf", "docx", "pptx", "xlsx", "csv", "json"]

# Enough of a file for its magic bytes; a PDF may start with up to 1 kB of other bytes.
HEAD_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Format:
    """An accepted format: how files of it are called and declared."""

    name: FormatName
    label: str
    extensions: tuple[str, ...]
    media_types: tuple[str, ...]
    container: Literal["text", "pdf", "zip"] = "text"


_OFFICE: Final = "application/vnd.openxmlformats-officedocument"

ACCEPTED: Final = (
    Format("txt", "plain text", (".txt", ".text", ".log"), ("text/plain",)),
    Format("md", "Markdown", (".md", ".markdown"), ("text/markdown", "text/x-markdown")),
    Format("html", "HTML", (".html", ".htm", ".xhtml"), ("text/html", "application/xhtml+xml")),
    Format("pdf", "PDF", (".pdf",), ("application/pdf", "application/x-pdf"), "pdf"),
    Format("docx", "Word (.docx)", (".docx",), (f"{_OFFICE}.wordprocessingml.document",), "zip"),
    Format("pptx", "PowerPoint (.pptx)", (".pptx",), (f"{_OFFICE}.presentationml.presentation",), "zip"),
    Format("xlsx", "Excel (.xlsx)", (".xlsx",), (f"{_OFFICE}.spreadsheetml.sheet",), "zip"),
    Format("csv", "CSV", (".csv", ".tsv"), ("text/csv", "text/tab-separated-values", "application/csv")),
    Format("json", "JSON", (".json", ".jsonl", ".ndjson"), ("application/json", "application/x-ndjson")),
)

_BY_EXTENSION: Final = {extension: accepted for accepted in ACCEPTED for extension in accepted.extensions}
_BY_MEDIA_TYPE: Final = {media_type: accepted for accepted in ACCEPTED for media_type in accepted.media_types}
_BY_NAME: Final = {accepted.name: accepted for accepted in ACCEPTED}

_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_FOREIGN: Final = (
    (b"MZ", "a Windows program"),
    (b"\x7fELF", "a Linux program"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"\xca\xfe\xba\xbe", "a Java class or macOS program"),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript document"),
    (b"OggS", "an Ogg recording"),
    (b"ID3", "an MP3 recording"),
)
_LEGACY_OFFICE: Final = {".doc": ".docx", ".xls": ".xlsx", ".ppt": ".pptx"}


def detect_format(filename: str, content_type: str | None, head: bytes) -> Format:
    """The format of a file, `head` being its first `HEAD_BYTES` bytes (or all of it).

    A known extension decides, then the declared type, then the bytes. UnsupportedFormat when none names
    an accepted format, or when the bytes say that the name is wrong. An empty head is left to the parser.
    """
    extension = PurePosixPath(filename.replace("\\", "/")).suffix.lower()
    media_type, _ = parse_media_type(content_type)
    claimed = _BY_EXTENSION.get(extension) or _BY_MEDIA_TYPE.get(media_type)
    if extension in _LEGACY_OFFICE:
        raise _unsupported(
            f"Old Office files ({extension}) are not accepted; save the document as {_LEGACY_OFFICE[extension]}."
        )
    if claimed is None and not extension and b"%PDF-" in head[:1024]:
        claimed = _BY_NAME["pdf"]
    if claimed is None:
        named = f"Files of type {extension}" if extension else f"Files of type {media_type or 'unknown'}"
        raise _unsupported(f"{named} are not accepted.")
    _check_content(claimed, head)
    return claimed


def parse_media_type(content_type: str | None) -> tuple[str, str | None]:
    """The bare media type in lower case, and its charset parameter if it has one."""
    if not content_type:
        return "", None
    message = Message()
    message["content-type"] = content_type
    return message.get_content_type() if "/" in content_type else "", message.get_content_charset()


def _check_content(claimed: Format, head: bytes) -> None:
    found = _contradiction(claimed, head)
    if found is not None:
        raise _unsupported(
            f"The file is named or declared as {claimed.label}, but its content is {found}. "
            "Upload it under its real type, or convert it."
        )


def _contradiction(claimed: Format, head: bytes) -> str | None:
    """What the bytes are when they are surely not of the claimed format."""
    if not head:
        return None
    is_pdf = b"%PDF-" in head[:1024] if claimed.container == "pdf" else head.startswith(b"%PDF-")
    if is_pdf:
        return None if claimed.container == "pdf" else "a PDF"
    if head.startswith(_ZIP):
        return None if claimed.container == "zip" else _zip_kind(head)
    if head.startswith(_OLE):
        # A password turns a .docx into an OLE file: the parser tells the two apart from the whole file.
        return None if claimed.container == "zip" else "an old or password-protected Office document"
    # Two printable letters are a program's magic only where a binary file follows.
    for magic, kind in _FOREIGN:
        if head.startswith(magic) and (len(magic) > 3 or claimed.container != "text" or b"\x00" in head[:512]):
            return kind
    if claimed.container == "text":
        return None
    return None if _is_binary(head) else "plain text"


def _zip_kind(head: bytes) -> str:
    for folder, kind in ((b"word/", "a Word document"), (b"ppt/", "PowerPoint slides"), (b"xl/", "an Excel workbook")):
        if folder in head:
            return kind
    return "a ZIP archive"


def _is_binary(head: bytes) -> bool:
    """Whether a file that should be PDF or Office may be a damaged one of it, rather than another kind of file."""
    return b"\x00" in head or any(byte > 0x7F for byte in head[:512])


def _unsupported(reason: str) -> UnsupportedFormat:
    accepted = [extension for each in ACCEPTED for extension in each.extensions]
    return UnsupportedFormat(f"{reason} Accepted: {', '.join(accepted)}.", accepted=accepted)
