"""Reads large bodies piece by piece: the parts of a form, and lines. Only one part is held at a time, on disk if it is large."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException

IN_MEMORY_BYTES = 2**20
LINE_BREAK = b"\n"


@dataclass
class Part:
    """One part of a form. Of one that is too large, `file` holds the beginning only and `size_bytes` is its length."""

    headers: dict[bytes, bytes] = field(default_factory=dict)
    name: str = ""
    filename: str | None = None
    size_bytes: int = 0
    # Closed by `form_parts`.
    file: SpooledTemporaryFile[bytes] = field(
        default_factory=lambda: SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115
    )

    @property
    def content_type(self) -> str | None:
        found = self.headers.get(b"content-type")
        return found.decode("latin-1") if found is not None else None


class _Parts:
    """What the parser calls; `finished` are the parts that are complete."""

    def __init__(self, max_part_bytes: int) -> None:
        self.finished: list[Part] = []
        self.current = Part()
        self.is_ended = False
        self._max_part_bytes = max_part_bytes
        self._name = self._value = b""

    def callbacks(self) -> Mapping[str, object]:
        names = (
            "part_begin", "part_data", "part_end", "header_field", "header_value", "header_end", "headers_finished", "end",
        )  # fmt: skip
        return {f"on_{name}": getattr(self, name) for name in names}

    def part_begin(self) -> None:
        self.current = Part()

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def header_end(self) -> None:
        self.current.headers[self._name.lower()] = self._value
        self._name = self._value = b""

    def headers_finished(self) -> None:
        _, options = parse_options_header(self.current.headers.get(b"content-disposition", b""))
        if b"name" not in options:
            raise FormParserError("a part has no name")
        self.current.name = _decoded(options[b"name"])
        if b"filename" in options:
            self.current.filename = _decoded(options[b"filename"])

    def part_data(self, data: bytes, start: int, end: int) -> None:
        part = self.current
        room = max(0, self._max_part_bytes - part.size_bytes)
        part.size_bytes += end - start
        # To the page cache: it does not block for long.
        part.file.write(data[start : min(end, start + room)])

    def end(self) -> None:
        self.is_ended = True

    def part_end(self) -> None:
        self.current.file.seek(0)
        self.finished.append(self.current)


async def form_parts(request: Request, *, max_part_bytes: int) -> AsyncIterator[Part]:
    """Each part once it is complete; its file is closed when the next one is asked for.

    Raises HTTPException (400) for a body that is no form. What came before is complete then.
    """
    _, options = parse_options_header(request.headers.get("content-type"))
    parts = _Parts(max_part_bytes)
    try:
        if not options.get(b"boundary"):
            raise FormParserError("no boundary")
        parser = MultipartParser(options[b"boundary"], parts.callbacks())  # type: ignore[arg-type] # by name, all there
        async for chunk in request.stream():
            parser.write(chunk)
            while parts.finished:
                part = parts.finished.pop(0)
                with part.file:
                    yield part
        if not parts.is_ended:
            raise FormParserError("the last boundary is missing")
    except FormParserError:
        raise HTTPException(400, "The body is not a form that can be read.") from None
    finally:
        for part in (*parts.finished, parts.current):
            part.file.close()


async def body_lines(request: Request, *, max_line_bytes: int) -> AsyncIterator[bytes | None]:
    """The lines of a body, without empty ones; None for one that is too long."""
    line = bytearray()
    is_too_long = False
    async for chunk in request.stream():
        first, *others = chunk.split(LINE_BREAK)
        for number, piece in enumerate((first, *others)):
            if number:  # a line break stood before this piece
                if is_too_long or line.strip():
                    yield None if is_too_long else bytes(line)
                line.clear()
                is_too_long = False
            is_too_long = is_too_long or len(line) + len(piece) > max_line_bytes
            line += b"" if is_too_long else piece
            if is_too_long:
                line.clear()
    if is_too_long or line.strip():
        yield None if is_too_long else bytes(line)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")
