"""Reads an upload request into originals: files of a multipart form, or one text as JSON. Storing them is the domain's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeVar

from fastapi import Request
from pydantic import JsonValue, TypeAdapter, ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from app.api.fields import Filename, Metadata, Title
from app.api.middleware import BODY_LIMIT
from app.api.problems import validation_problem
from app.api.v1.documents.bodies import ManifestLine, TextContent, TextDocument
from app.domain.documents.errors import TooManyFiles
from app.domain.documents.originals import Upload
from app.domain.documents.replace import NewContent
from app.errors import UnsupportedMediaType
from app.parsing.formats import HEAD_BYTES
from app.settings import Settings

Text = TypeVar("Text", TextDocument, TextContent, ManifestLine)

CONTENT_TYPES = ("multipart/form-data", "application/json")
STREAM_BYTES = 256 * 1024
MAX_TEXT_FIELD_BYTES = 2**20
EXTENSIONS = {"text/plain": ".txt", "text/markdown": ".md", "text/html": ".html"}

_titles = TypeAdapter(list[Title])
_metadata: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(Metadata)
_filename: TypeAdapter[str] = TypeAdapter(Filename)


@dataclass(frozen=True)
class Intake:
    """What a request wants to store. The uploads can be read until the request's block is left."""

    uploads: list[Upload]
    metadata: dict[str, Any]


@asynccontextmanager
async def read_intake(request: Request, settings: Settings) -> AsyncIterator[Intake]:
    """Raises UnsupportedMediaType, ValidationFailed, TooManyFiles, or BodyTooLarge while it reads."""
    if _is_form(request):
        request.scope[BODY_LIMIT] = settings.max_request_bytes
        async with _form(request, max_files=settings.max_files_per_request) as form:
            yield await _from_form(form)
    else:
        given = await _text(request, TextDocument, settings)
        filename = given.filename or f"{given.title}{EXTENSIONS[given.media_type]}"
        yield Intake([text_upload(given, given.title, filename)], given.metadata)


@asynccontextmanager
async def read_content_intake(request: Request, settings: Settings) -> AsyncIterator[NewContent]:
    """One file or one text for a document that is there. Raises what `read_intake` raises."""
    if _is_form(request):
        request.scope[BODY_LIMIT] = settings.max_upload_bytes + MAX_TEXT_FIELD_BYTES
        async with _form(request, max_files=1) as form:
            intake = await _from_form(form)
            yield NewContent(
                upload=intake.uploads[0],
                title=intake.uploads[0].title if "titles" in form else None,
                metadata=intake.metadata if "metadata" in form else None,
            )
    else:
        given = await _text(request, TextContent, settings)
        yield NewContent(
            upload=text_upload(given, given.title or "", given.filename or ""),
            title=given.title,
            metadata=given.metadata,
            extension=None if given.filename else EXTENSIONS[given.media_type],
        )


def _is_form(request: Request) -> bool:
    """Whether the body is a form rather than JSON; raises UnsupportedMediaType if it is neither."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in CONTENT_TYPES:
        raise UnsupportedMediaType(
            f"Send files as {CONTENT_TYPES[0]} or one text as {CONTENT_TYPES[1]}.", accepted=list(CONTENT_TYPES)
        )
    return media_type == CONTENT_TYPES[0]


@asynccontextmanager
async def _form(request: Request, *, max_files: int) -> AsyncIterator[FormData]:
    try:
        async with request.form(max_files=max_files, max_fields=10, max_part_size=MAX_TEXT_FIELD_BYTES) as form:
            yield form
    except HTTPException as error:
        if "Too many files" in str(error.detail):
            raise TooManyFiles(f"At most {max_files} files are accepted here.", limit_files=max_files) from None
        raise


async def _text(request: Request, model: type[Text], settings: Settings) -> Text:
    request.scope[BODY_LIMIT] = settings.max_upload_bytes
    return parsed_text(model, await request.body(), "body")


def text_upload(given: TextDocument | TextContent, title: str, filename: str) -> Upload:
    content = given.text.encode()

    async def stream() -> AsyncIterator[bytes]:
        yield content

    media_type = f"{given.media_type}; charset=utf-8"
    return Upload(title, filename, media_type, len(content), content[:HEAD_BYTES], stream)


async def _from_form(form: FormData) -> Intake:
    files = [part for part in form.getlist("files") if isinstance(part, UploadFile)]
    unknown = sorted(set(form) - {"files", "titles", "metadata"})
    if unknown:
        raise _refused(unknown[0], "Unknown form field", "extra_forbidden")
    if not files or len(files) < len(form.getlist("files")):
        raise _refused("files", "Send each file as a part named `files`, with a file name", "missing")
    metadata = _parsed(_metadata, form, "metadata") or {}
    titles = _parsed(_titles, form, "titles")
    if titles is not None and len(titles) != len(files):
        raise _refused("titles", f"{len(titles)} titles for {len(files)} files", "wrong_length")
    return Intake(
        [await _from_file(file, number, titles[number] if titles else None) for number, file in enumerate(files)],
        metadata,
    )


async def _from_file(file: UploadFile, number: int, title: str | None) -> Upload:
    filename = checked_filename(file.filename, number)
    head = await file.read(HEAD_BYTES)

    async def stream() -> AsyncIterator[bytes]:
        await file.seek(0)
        while chunk := await file.read(STREAM_BYTES):
            yield chunk

    return Upload(title or title_of(filename), filename, file.content_type, file.size or 0, head, stream)


def checked_filename(filename: str | None, number: int) -> str:
    """Of the file with this number in the request. Raises ValidationFailed."""
    try:
        return _filename.validate_python(filename)
    except ValidationError as error:
        raise validation_problem(_located(error, "body", "files", number, "filename")) from None


def title_of(filename: str) -> str:
    """What a file is called where no title is given: its name without folders."""
    return (PurePosixPath(filename.replace("\\", "/")).name or filename)[:500]


def parsed_text(model: type[Text], line: bytes, *prefix: str | int) -> Text:
    """A text given as JSON. Raises ValidationFailed, with fields below `prefix`."""
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        raise validation_problem(_located(error, *prefix)) from None


def parsed_metadata(text: bytes) -> dict[str, Any]:
    """Metadata given as JSON. Raises ValidationFailed."""
    try:
        return _metadata.validate_json(text)
    except ValidationError as error:
        raise validation_problem(_located(error, "body", "metadata")) from None


def _parsed(adapter: TypeAdapter[Any], form: FormData, name: str) -> Any:
    """A form field that holds JSON; None if it is not there."""
    values = form.getlist(name)
    if not values:
        return None
    if len(values) > 1 or not isinstance(values[0], str):
        raise _refused(name, "Send it once, as JSON text", "json_type")
    try:
        return adapter.validate_json(values[0])
    except ValidationError as error:
        raise validation_problem(_located(error, "body", name)) from None


def _refused(field: str, message: str, rule: str) -> Exception:
    return validation_problem([{"loc": ("body", field), "msg": message, "type": rule}])


def _located(error: ValidationError, *prefix: str | int) -> list[dict[str, Any]]:
    return [{**item, "loc": (*prefix, *item["loc"])} for item in error.errors(include_input=False, include_url=False)]
