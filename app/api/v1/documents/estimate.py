"""The route that tells the bill of an upload before it is spent."""

from typing import Self

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from app.api.deps import ContainerDep, EditorCaller, RoleRequired, WorkspaceDep
from app.api.idempotency import READS_ONLY
from app.api.problems import problems
from app.api.v1.documents.intake import read_intake
from app.api.v1.documents.openapi import UPLOAD_BODY
from app.domain.documents.errors import FileTooLarge, TooManyFiles
from app.domain.documents.originals import Originals
from app.domain.limits.estimate import Estimate, EstimateService
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.errors import UnsupportedMediaType

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/documents/estimate", tags=["documents"])


class FileEstimated(BaseModel):
    """One file."""

    filename: str
    passages: int
    chunks: int
    error_code: str | None = Field(description="Why it could not be read; indexing would end so too.")
    error_detail: str | None


class UploadEstimate(BaseModel):
    """What indexing would ask of models. Nothing was stored and no model was called."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "files": [
                        {"filename": "a.pdf", "passages": 96, "chunks": 11, "error_code": None, "error_detail": None}
                    ],
                    "chunks": 11,
                    "model_calls": 11,
                    "tokens_in": 34100,
                    "tokens_out": 7300,
                    "embedding_tokens": 25800,
                    "cost": 0.0261,
                    "is_measured": False,
                    "model_tokens_left": 4971743,
                    "fits_budget": True,
                }
            ]
        }
    )

    files: list[FileEstimated]
    chunks: int
    model_calls: int = Field(description="Calls of the chat model; 0 without the graph.")
    tokens_in: int
    tokens_out: int
    embedding_tokens: int
    cost: float | None = Field(description="At the models' prices, where the operator has set any.")
    is_measured: bool = Field(description="From what this workspace took so far, rather than from general figures.")
    model_tokens_left: int | None = Field(description="Of this month's budget; null: not limited.")
    fits_budget: bool

    @classmethod
    def of(cls, estimate: Estimate) -> Self:
        plain = {name: getattr(estimate, name) for name in cls.model_fields if name != "files"}
        files = [
            FileEstimated(
                filename=file.filename,
                passages=file.passages,
                chunks=file.chunks,
                error_code=file.error.reason if file.error is not None else None,
                error_detail=file.error.detail if file.error is not None else None,
            )
            for file in estimate.files
        ]
        return cls(files=files, **plain)


@router.post(
    "",
    summary="Estimate an upload",
    openapi_extra={"requestBody": UPLOAD_BODY, **READS_ONLY},
    responses=problems(
        RoleRequired, WorkspaceNotFound, WorkspaceDeleting, FileTooLarge, TooManyFiles, UnsupportedMediaType
    ),
)
async def estimate_upload(
    workspace_id: WorkspaceDep, caller: EditorCaller, container: ContainerDep, request: Request
) -> UploadEstimate:
    """Takes what an upload takes, and tells chunks, model calls, tokens and money. Summaries of entities that many
    documents name come on top."""
    service = EstimateService(container.database, container.parser, container.settings)
    originals = Originals(container.blobs, max_bytes=container.settings.max_upload_bytes)
    async with read_intake(request, container.settings) as intake:
        for upload in intake.uploads:
            originals.check(upload)
        return UploadEstimate.of(await service.estimate(caller.tenant_id, workspace_id, intake.uploads))
