"""The route that takes in many documents, each by itself, while it reads them."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException

from app.api.body_parts import Part, body_lines, form_parts
from app.api.deps import ContainerDep, EditorCaller, RoleRequired, WorkspaceDep
from app.api.middleware import BODY_LIMIT
from app.api.problems import (
    BadRequest,
    BodyTooLarge,
    Problem,
    problem_body,
    problems,
    request_id_of,
    status_of,
    validation_problem,
)
from app.api.v1.documents.bodies import ManifestLine
from app.api.v1.documents.intake import (
    EXTENSIONS,
    MAX_TEXT_FIELD_BYTES,
    STREAM_BYTES,
    checked_filename,
    parsed_metadata,
    parsed_text,
    text_upload,
    title_of,
)
from app.api.v1.documents.openapi import BULK_BODY, MANIFEST
from app.api.v1.documents.schemas import BulkItem, BulkResult, document_link
from app.blobs.store import BlobStoreUnavailable
from app.domain.documents.errors import FileTooLarge, TooManyFiles
from app.domain.documents.originals import Upload
from app.domain.documents.upload import Uploaded, UploadService
from app.domain.limits.errors import quota_of
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.errors import AppError, TooLarge, UnsupportedMediaType
from app.parsing.formats import HEAD_BYTES
from app.settings import Settings

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/documents/bulk", tags=["documents"])
FORM = "multipart/form-data"


@dataclass(frozen=True)
class _Item:
    """One document of a request, or why it is none."""

    upload: Upload | AppError
    metadata: dict[str, Any]
    filename: str | None
    ref: str | None = None


@router.post(
    "",
    status_code=207,
    summary="Upload many documents",
    openapi_extra={"requestBody": BULK_BODY},
    responses=problems(
        RoleRequired, WorkspaceNotFound, WorkspaceDeleting, FileTooLarge, TooManyFiles, UnsupportedMediaType,
        BlobStoreUnavailable,
    ),
)  # fmt: skip
async def upload_many(
    workspace_id: WorkspaceDep,
    caller: EditorCaller,
    container: ContainerDep,
    request: Request,
    duplicate: Annotated[
        Literal["allow"] | None, Query(description="`allow`: make new documents even of bytes that the workspace has.")
    ] = None,
) -> BulkResult:
    """Files as multipart/form-data, or texts as a manifest of one JSON object a line. Each is stored as soon as it has been
    read, and has a result of its own: one that is refused does not touch the others. A request that is refused while it is
    read has the `results` of what was taken in before in its problem."""
    settings = container.settings
    service = UploadService(container.database, container.blobs, max_upload_bytes=settings.max_upload_bytes)
    await service.check_open(caller.tenant_id, workspace_id)
    store = partial(service.upload, caller.tenant_id, workspace_id, allow_duplicates=duplicate == "allow")
    items = _items(request, settings)
    results: list[BulkItem] = []
    too_many = 0
    try:
        async for item in items:
            # Read to the end all the same: a client that is still sending would not see the answer.
            if len(results) >= settings.max_files_per_bulk:
                too_many += 1
            else:
                results.append(await _result(item, len(results), partial(store, metadata=item.metadata), request))
    except BodyTooLarge as error:
        raise TooLarge(error.detail, limit_bytes=error.limit_bytes, **dict(_counted(results))) from None
    except HTTPException as error:
        raise BadRequest(error.detail, **dict(_counted(results))) from None
    except AppError as error:
        error.facts |= dict(_counted(results))
        raise
    if too_many:
        raise TooManyFiles(
            f"At most {settings.max_files_per_bulk} are taken in at once: see `results`. Send the last {too_many} anew.",
            limit_files=settings.max_files_per_bulk,
            **dict(_counted(results)),
        )
    return _counted(results)


def _counted(results: list[BulkItem]) -> BulkResult:
    counts = Counter(item.status for item in results)
    return BulkResult(
        accepted=counts["accepted"], duplicates=counts["duplicate"], refused=counts["refused"], results=results
    )


async def _result(
    item: _Item, index: int, store: Callable[[list[Upload]], Awaitable[Sequence[Uploaded]]], request: Request
) -> BulkItem:
    place: dict[str, Any] = {"index": index, "ref": item.ref, "filename": item.filename}
    try:
        if isinstance(item.upload, AppError):
            raise item.upload
        [found] = await store([item.upload])
    except AppError as error:
        return _refused(place, error, request)
    except DBAPIError as error:
        # The counting triggers refuse one document like any other reason.
        quota = quota_of(error)
        if quota is None:
            raise
        return _refused(place, quota, request)
    document = found.record.document
    link = document_link(document.workspace_id, document.id)
    status: Any = "duplicate" if found.is_duplicate else "accepted"
    return BulkItem(**place, status=status, document_id=document.id, link=link, problem=None)


def _refused(place: dict[str, Any], error: AppError, request: Request) -> BulkItem:
    body = problem_body(
        status_of(type(error)), error.reason, error.title, error.detail, request_id_of(request), error.facts
    )
    problem = Problem.model_validate(body)
    return BulkItem(**place, status="refused", document_id=None, link=None, problem=problem)


def _items(request: Request, settings: Settings) -> AsyncIterator[_Item]:
    """Raises UnsupportedMediaType at once."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (FORM, MANIFEST):
        raise UnsupportedMediaType(
            f"Send files as {FORM} or a manifest of texts as {MANIFEST}.", accepted=[FORM, MANIFEST]
        )
    request.scope[BODY_LIMIT] = settings.max_bulk_bytes
    return _from_form(request, settings) if media_type == FORM else _from_manifest(request, settings)


async def _from_form(request: Request, settings: Settings) -> AsyncIterator[_Item]:
    metadata: dict[str, Any] = {}
    number = 0
    async for part in form_parts(request, max_part_bytes=settings.max_upload_bytes):
        if part.name == "metadata" and part.filename is None and number == 0:
            metadata = parsed_metadata(part.file.read(MAX_TEXT_FIELD_BYTES))
            continue
        yield _file(part, number, metadata)
        number += 1


def _file(part: Part, number: int, metadata: dict[str, Any]) -> _Item:
    try:
        if part.name != "files" or part.filename is None:
            message = "Send each file as a part named `files`, with a file name, and `metadata` before the first"
            raise validation_problem([{"loc": ("body", part.name[:100]), "msg": message, "type": "extra_forbidden"}])
        filename = checked_filename(part.filename, number)
    except AppError as error:
        return _Item(error, metadata, None)
    head = part.file.read(HEAD_BYTES)
    upload = Upload(title_of(filename), filename, part.content_type, part.size_bytes, head, lambda: _content(part.file))
    return _Item(upload, metadata, filename)


async def _content(file: "SpooledTemporaryFile[bytes]") -> AsyncIterator[bytes]:
    file.seek(0)
    while piece := file.read(STREAM_BYTES):
        yield piece


async def _from_manifest(request: Request, settings: Settings) -> AsyncIterator[_Item]:
    limit = settings.max_upload_bytes
    number = 0
    # JSON takes more room than the text in it.
    async for line in body_lines(request, max_line_bytes=2 * limit + MAX_TEXT_FIELD_BYTES):
        yield _line(line, number, limit)
        number += 1
    if not number:
        raise validation_problem([{"loc": ("body",), "msg": "A manifest needs a line", "type": "missing"}])


def _line(line: bytes | None, number: int, limit: int) -> _Item:
    if line is None:
        return _Item(FileTooLarge(f"Line {number} is too long.", limit_bytes=limit), {}, None)
    try:
        given = parsed_text(ManifestLine, line, "body", number)
    except AppError as error:
        return _Item(error, {}, None)
    filename = given.filename or f"{given.title}{EXTENSIONS[given.media_type]}"
    return _Item(text_upload(given, given.title, filename), given.metadata, filename, given.ref)
