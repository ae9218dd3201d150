"""Routes of documents."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response, status

from app.api.deps import ContainerDep, EditorCaller, ReaderCaller, RoleRequired, TenantUnit, WorkspaceDep
from app.api.pagination import Cursor, InvalidCursor, Limit, decode_position, encode_position
from app.api.problems import problems
from app.api.v1.documents.bodies import DocumentUpdate
from app.api.v1.documents.filters import document_filter
from app.api.v1.documents.intake import read_intake
from app.api.v1.documents.openapi import LOCATION, RETRY_AFTER, UPLOAD_BODY
from app.api.v1.documents.schemas import DocumentPage, DocumentRead, DocumentsAccepted, UploadedDocument
from app.blobs.store import BlobStoreUnavailable
from app.domain.documents.errors import (
    DocumentDeleting,
    DocumentNotFound,
    FileTooLarge,
    TooManyFiles,
)
from app.domain.documents.records import DocumentFilter
from app.domain.documents.repository import DocumentRepository
from app.domain.documents.service import DocumentService
from app.domain.documents.upload import UploadService
from app.domain.documents.waiting import read_when_final
from app.domain.limits.errors import QuotaExceeded
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.domain.workspaces.metadata_fields import MetadataMismatch
from app.domain.workspaces.repository import WorkspaceRepository
from app.errors import UnsupportedMediaType

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/documents", tags=["documents"])
POLL_AGAIN_SECONDS = "2"


async def document_service(session: TenantUnit, workspace_id: WorkspaceDep) -> DocumentService:
    return DocumentService(session, workspace_id)


ServiceDep = Annotated[DocumentService, Depends(document_service)]
Duplicate = Annotated[
    Literal["allow"] | None, Query(description="`allow`: make a new document even of bytes that the workspace has.")
]


@router.post(
    "",
    status_code=202,
    summary="Upload documents",
    openapi_extra={"requestBody": UPLOAD_BODY},
    responses={
        200: {"model": DocumentsAccepted, "description": "The workspace has all of these bytes already."},
        202: {"headers": LOCATION},
        **problems(
            RoleRequired, WorkspaceNotFound, WorkspaceDeleting, MetadataMismatch, FileTooLarge, TooManyFiles,
            UnsupportedMediaType, BlobStoreUnavailable, QuotaExceeded,
        ),
    },
)  # fmt: skip
async def upload_documents(
    workspace_id: WorkspaceDep,
    caller: EditorCaller,
    container: ContainerDep,
    request: Request,
    response: Response,
    duplicate: Duplicate = None,
) -> DocumentsAccepted:
    """Files as multipart/form-data, or one text as JSON. All are taken in or none; poll each document's own link.

    Bytes that the workspace has already are answered with the document that holds them."""
    service = UploadService(container.database, container.blobs, max_upload_bytes=container.settings.max_upload_bytes)
    async with read_intake(request, container.settings) as intake:
        found = await service.upload(
            caller.tenant_id, workspace_id, intake.uploads, intake.metadata, allow_duplicates=duplicate == "allow"
        )
    documents = [UploadedDocument.of_upload(each) for each in found]
    if all(each.is_duplicate for each in found):
        response.status_code = status.HTTP_200_OK
    only = documents[0].links.self if len(documents) == 1 else f"/v1/workspaces/{workspace_id}/documents"
    response.headers["Location"] = only
    return DocumentsAccepted(documents=documents)


@router.get("", summary="List documents", responses=problems(WorkspaceNotFound, InvalidCursor))
async def list_documents(
    workspace_id: WorkspaceDep,
    _: ReaderCaller,
    session: TenantUnit,
    wanted: Annotated[DocumentFilter, Depends(document_filter)],
    cursor: Cursor = None,
    limit: Limit = 50,
) -> DocumentPage:
    """Newest first, narrowed by any of the filters."""
    after = decode_position(cursor)
    await WorkspaceRepository(session).get(workspace_id)
    found = await DocumentRepository(session, workspace_id).list(wanted, after=after, limit=limit + 1)
    page, rest = found[:limit], found[limit:]
    last = page[-1].document if rest else None
    return DocumentPage(
        items=[DocumentRead.of(record) for record in page],
        next_cursor=encode_position(last.created_at, last.id) if last else None,
    )


@router.get(
    "/{document_id}",
    summary="Read a document's status",
    responses={200: {"headers": RETRY_AFTER}, **problems(DocumentNotFound)},
)
async def read_document(
    workspace_id: WorkspaceDep,
    document_id: UUID,
    caller: ReaderCaller,
    container: ContainerDep,
    request: Request,
    response: Response,
    wait: Annotated[int, Query(ge=0, le=60, description="Seconds to wait for a final status.")] = 0,
) -> DocumentRead:
    """For polling: status, what each engine has done, and the modes that answer already. With `wait` the answer comes
    as soon as the status is final, or after that many seconds as it is then."""
    record = await read_when_final(
        container.database, caller.tenant_id, workspace_id, document_id,
        seconds=wait, is_abandoned=request.is_disconnected,
    )  # fmt: skip
    if record.status in ("processing", "deleting"):
        response.headers["Retry-After"] = POLL_AGAIN_SECONDS
    return DocumentRead.of(record)


@router.patch(
    "/{document_id}",
    summary="Change a document's title or metadata",
    responses=problems(RoleRequired, DocumentNotFound, DocumentDeleting, MetadataMismatch),
)
async def update_document(
    document_id: UUID, wanted: DocumentUpdate, _: EditorCaller, service: ServiceDep
) -> DocumentRead:
    """Citations show the new title from now on."""
    return DocumentRead.of(await service.update(document_id, title=wanted.title, metadata=wanted.metadata))


@router.delete(
    "/{document_id}",
    status_code=202,
    summary="Delete a document",
    responses=problems(RoleRequired, DocumentNotFound),
)
async def delete_document(document_id: UUID, _: EditorCaller, service: ServiceDep) -> DocumentRead:
    """No query uses it from now on; its indexes and its original are removed in the background."""
    return DocumentRead.of(await service.delete(document_id))
