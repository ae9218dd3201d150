"""Routes that steer the indexing of a document: try again, call off."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Response

from app.api.deps import EditorCaller, RoleRequired, TenantUnit, WorkspaceDep
from app.api.problems import problems
from app.api.v1.documents.openapi import LOCATION
from app.api.v1.documents.schemas import DocumentRead, document_link
from app.domain.documents.errors import DocumentDeleting, DocumentNotFound, NothingToCancel, NothingToRetry
from app.domain.documents.service import DocumentService

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/documents/{document_id}", tags=["documents"])


async def document_service(session: TenantUnit, workspace_id: WorkspaceDep) -> DocumentService:
    return DocumentService(session, workspace_id)


ServiceDep = Annotated[DocumentService, Depends(document_service)]


@router.post(
    "/retry",
    status_code=202,
    summary="Try a failed document again",
    responses={
        202: {"headers": LOCATION},
        **problems(RoleRequired, DocumentNotFound, DocumentDeleting, NothingToRetry),
    },
)
async def retry_document(
    workspace_id: WorkspaceDep, document_id: UUID, _: EditorCaller, service: ServiceDep, response: Response
) -> DocumentRead:
    """Only what failed is done again: answers that a model has given are kept."""
    record = await service.retry(document_id)
    response.headers["Location"] = document_link(workspace_id, document_id)
    return DocumentRead.of(record)


@router.post(
    "/cancel",
    status_code=202,
    summary="Call off the indexing of a document",
    responses={
        202: {"headers": LOCATION},
        **problems(RoleRequired, DocumentNotFound, DocumentDeleting, NothingToCancel),
    },
)
async def cancel_document(
    workspace_id: WorkspaceDep, document_id: UUID, _: EditorCaller, service: ServiceDep, response: Response
) -> DocumentRead:
    """Whoever works on it stops within seconds, model calls included. What is ready goes on answering; a retry
    goes on where the work was stopped."""
    record = await service.cancel(document_id)
    response.headers["Location"] = document_link(workspace_id, document_id)
    return DocumentRead.of(record)
