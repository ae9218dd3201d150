"""The shape of errors that clients of OpenAI's interface expect, made from the problem that any other client gets."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

PATHS = "/v1/openai/"
MEDIA_TYPE = "application/json"
# What OpenAI calls them; the SDK goes by the status, and people by the name.
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
QUOTA_TYPE = "insufficient_quota"


class OpenAIErrorDetail(BaseModel):
    """`code` is ours, as in every problem; further members are the problem's facts."""

    model_config = ConfigDict(extra="allow")

    message: str
    type: str
    code: str
    param: str | None = Field(default=None, description="The field of the request that is meant.")
    request_id: str


class OpenAIError(BaseModel):
    """An error as OpenAI's interface tells it."""

    error: OpenAIErrorDetail


def is_openai_path(request: Request) -> bool:
    return str(request.scope.get("path", "")).startswith(PATHS)


def openai_status(status: int) -> int:
    """OpenAI has no 422: what is wrong with a request is a 400."""
    return 400 if status == 422 else status


def openai_error(problem: Mapping[str, Any]) -> dict[str, Any]:
    """The body for a problem's members."""
    facts = {name: value for name, value in problem.items() if name not in ("type", "title", "status", "detail")}
    status, code = openai_status(problem["status"]), problem["code"]
    other = "server_error" if status >= 500 else "invalid_request_error"
    kind = QUOTA_TYPE if code == "quota_exceeded" else TYPES.get(status, other)
    return {"error": {**facts, "message": problem["detail"], "type": kind, "code": code, "param": _param(problem)}}


def _param(problem: Mapping[str, Any]) -> str | None:
    errors = problem.get("errors") or ()
    field = problem.get("param") or (errors[0]["field"].removeprefix("body.") if errors else None)
    return str(field) if field is not None else None
