"""Routes of a document's original: download it, put a new one in its place."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response, status
from fastapi.responses import StreamingResponse

from app.api.deps import ContainerDep, EditorCaller, ReaderCaller, RoleRequired, WorkspaceDep
from app.api.problems import problems
from app.api.v1.documents.download import original
from app.api.v1.documents.intake import read_content_intake
from app.api.v1.documents.openapi import CONTENT, CONTENT_BODY, LOCATION
from app.api.v1.documents.schemas import DocumentReplaced, document_link
from app.blobs.store import BlobMissing, BlobStoreUnavailable
from app.domain.documents.errors import DocumentDeleting, DocumentNotFound, FileTooLarge
from app.domain.documents.replace import ContentService
from app.domain.documents.repository import DocumentRepository
from app.domain.limits.errors import QuotaExceeded
from app.domain.workspaces.errors import WorkspaceDeleting
from app.domain.workspaces.metadata_fields import MetadataMismatch
from app.errors import UnsupportedMediaType

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/documents/{document_id}/content", tags=["documents"])


@router.get(
    "",
    summary="Download the original",
    response_class=StreamingResponse,
    responses={200: CONTENT, **problems(DocumentNotFound, BlobMissing, BlobStoreUnavailable)},
)
async def read_content(
    workspace_id: WorkspaceDep, document_id: UUID, caller: ReaderCaller, container: ContainerDep
) -> Any:
    """The bytes as they were uploaded, as an attachment."""
    async with container.database.tenant(caller.tenant_id) as session:
        record = await DocumentRepository(session, workspace_id).get(document_id)
    return await original(container.blobs, record)


@router.put(
    "",
    status_code=202,
    summary="Replace the content of a document",
    openapi_extra={"requestBody": CONTENT_BODY},
    responses={
        200: {"model": DocumentReplaced, "description": "The document has these bytes already: nothing was changed."},
        202: {"headers": LOCATION},
        **problems(
            RoleRequired, DocumentNotFound, DocumentDeleting, WorkspaceDeleting, MetadataMismatch, FileTooLarge,
            UnsupportedMediaType, BlobStoreUnavailable, QuotaExceeded,
        ),
    },
)  # fmt: skip
async def replace_content(
    workspace_id: WorkspaceDep,
    document_id: UUID,
    caller: EditorCaller,
    container: ContainerDep,
    request: Request,
    response: Response,
) -> DocumentReplaced:
    """A new version, from one file as multipart/form-data or one text as JSON. Each engine answers from the old version
    until it has indexed the new one, and exchanges them at once. The same bytes as now make no new version."""
    service = ContentService(container.database, container.blobs, max_upload_bytes=container.settings.max_upload_bytes)
    async with read_content_intake(request, container.settings) as intake:
        replaced = await service.replace(caller.tenant_id, workspace_id, document_id, intake)
    response.headers["Location"] = document_link(workspace_id, document_id)
    if replaced.is_unchanged:
        response.status_code = status.HTTP_200_OK
    return DocumentReplaced.of_replacement(replaced)
