"""The `responses=` of routes that answer errors in OpenAI's shape."""

from http import HTTPStatus
from typing import Any

from app.api.openai_errors import MEDIA_TYPE, OpenAIError, openai_error, openai_status
from app.api.problems import (
    BadRequest,
    DatabaseUnavailable,
    InternalError,
    ValidationFailed,
    example_of,
    status_of,
)
from app.domain.limits.errors import RateLimited
from app.domain.tenants.errors import InvalidApiKey, TenantSuspended, TokenNotMapped
from app.domain.tenants.oidc import IssuerUnavailable
from app.errors import AppError

OF_EVERY_ROUTE: tuple[type[AppError], ...] = (
    InvalidApiKey, TenantSuspended, TokenNotMapped, BadRequest, ValidationFailed, InternalError, DatabaseUnavailable,
    IssuerUnavailable, RateLimited,
)  # fmt: skip


def openai_problems(*errors: type[AppError]) -> dict[int | str, dict[str, Any]]:
    """One entry a status, one example a code."""
    responses: dict[int | str, dict[str, Any]] = {}
    for error in (*OF_EVERY_ROUTE, *errors):
        status = openai_status(status_of(error))
        entry = responses.setdefault(
            status,
            {
                "model": OpenAIError,
                "description": HTTPStatus(status).phrase,
                "content": {MEDIA_TYPE: {"examples": {}}},
            },
        )
        example = {"summary": error.title, "value": openai_error(example_of(error))}
        entry["content"][MEDIA_TYPE]["examples"][error.code] = example
    return responses
