"""Checks an Office file's container before a parser unpacks it: is it the right kind, and of a sane size?"""

import zipfile
from pathlib import Path
from typing import Final

from app.parsing.errors import ParseFailed, UnsupportedFormat

_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
_MAX_EXPANDED: Final = 1_000_000_000
_MAX_RATIO: Final = 200
_RATIO_MATTERS_FROM: Final = 50_000_000
_MAX_ENTRIES: Final = 20_000
_MAIN_PARTS: Final = {"docx": "word/", "pptx": "ppt/", "xlsx": "xl/"}
_LABELS: Final = {"docx": "a Word document", "pptx": "a PowerPoint file", "xlsx": "an Excel workbook"}


def check_office_file(path: Path, kind: str) -> None:
    """Raises ParseFailed for a password, a damaged or wrong archive, and for one that expands beyond reason."""
    with path.open("rb") as file:
        if file.read(len(_OLE)) == _OLE:
            raise _ole_failure(file.read(), kind)
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise ParseFailed(
            "broken_document",
            f"The file is damaged or incomplete: {_LABELS[kind]} is an archive, and this one cannot be opened. "
            "Upload the whole file again.",
        ) from None
    _check_kind([entry.filename for entry in entries], kind)
    _check_size(entries, path.stat().st_size)


def _ole_failure(content: bytes, kind: str) -> ParseFailed:
    if _ENCRYPTED in content:
        return ParseFailed(
            "encrypted_document", "The document is protected by a password. Remove the password and upload it again."
        )
    return UnsupportedFormat(f"The file is in the old Office format; save it as {_LABELS[kind]} (.{kind}).")


def _check_kind(names: list[str], kind: str) -> None:
    if any(name.startswith(_MAIN_PARTS[kind]) for name in names):
        return
    for other, folder in _MAIN_PARTS.items():
        if any(name.startswith(folder) for name in names):
            raise UnsupportedFormat(f"The file is named .{kind}, but it is {_LABELS[other]}: name it .{other}.")
    raise UnsupportedFormat(f"The file is named .{kind}, but it is a ZIP archive and not {_LABELS[kind]}.")


def _check_size(entries: list[zipfile.ZipInfo], packed: int) -> None:
    expanded = sum(entry.file_size for entry in entries)
    is_bomb = expanded > _MAX_EXPANDED or len(entries) > _MAX_ENTRIES
    if expanded > _RATIO_MATTERS_FROM and expanded > packed * _MAX_RATIO:
        is_bomb = True
    if is_bomb:
        raise ParseFailed(
            "parse_memory",
            f"The file of {packed:,} bytes unpacks to {expanded:,} bytes in {len(entries):,} parts, more than is allowed.",
            expanded_bytes=expanded,
        )
