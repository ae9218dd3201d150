"""Reads an upload request into originals: files of a multipart form, or one text as JSON. Storing them is the domain's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from fastapi import Request
from pydantic import JsonValue, TypeAdapter, ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from app.api.fields import Filename, Metadata, Title
from app.api.middleware import BODY_LIMIT
from app.api.problems import validation_problem
from app.api.v1.documents.schemas import TextDocument
from app.domain.documents.errors import TooManyFiles
from app.domain.documents.upload import Upload
from app.errors import UnsupportedMediaType
from app.parsing.formats import HEAD_BYTES
from app.settings import Settings

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
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        request.scope[BODY_LIMIT] = settings.max_request_bytes
        try:
            async with request.form(
                max_files=settings.max_files_per_request, max_fields=10, max_part_size=MAX_TEXT_FIELD_BYTES
            ) as form:
                yield await _from_form(form)
        except HTTPException as error:
            if "Too many files" in str(error.detail):
                limit = settings.max_files_per_request
                raise TooManyFiles(f"At most {limit} files are accepted in one request.", limit_files=limit) from None
            raise
    elif media_type == "application/json":
        request.scope[BODY_LIMIT] = settings.max_upload_bytes
        yield _from_text(await request.body())
    else:
        raise UnsupportedMediaType(
            f"Send files as {CONTENT_TYPES[0]} or one text as {CONTENT_TYPES[1]}.", accepted=list(CONTENT_TYPES)
        )


def _from_text(body: bytes) -> Intake:
    try:
        given = TextDocument.model_validate_json(body)
    except ValidationError as error:
        raise validation_problem(_located(error, "body")) from None
    content = given.text.encode()

    async def stream() -> AsyncIterator[bytes]:
        yield content

    filename = given.filename or f"{given.title}{EXTENSIONS[given.media_type]}"
    upload = Upload(
        given.title, filename, f"{given.media_type}; charset=utf-8", len(content), content[:HEAD_BYTES], stream
    )
    return Intake([upload], given.metadata)


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
    try:
        filename = _filename.validate_python(file.filename)
    except ValidationError as error:
        raise validation_problem(_located(error, "body", "files", number, "filename")) from None
    head = await file.read(HEAD_BYTES)

    async def stream() -> AsyncIterator[bytes]:
        await file.seek(0)
        while chunk := await file.read(STREAM_BYTES):
            yield chunk

    last_part = PurePosixPath(filename.replace("\\", "/")).name or filename
    return Upload(title or last_part[:500], filename, file.content_type, file.size or 0, head, stream)


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
