"""Every error answer is an RFC 9457 problem: the mapping from error kinds to statuses, and their place in OpenAPI."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import asyncpg
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_jsonable_python
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

from app.api.openai_errors import MEDIA_TYPE as JSON
from app.api.openai_errors import is_openai_path, openai_error, openai_status
from app.db.session import is_unavailable
from app.domain.limits.errors import RateLimited, quota_of
from app.domain.tenants.errors import InvalidApiKey, TenantSuspended, TokenNotMapped
from app.domain.tenants.oidc import IssuerUnavailable
from app.domain.tenants.operators import InvalidOperatorSecret
from app.errors import (
    AppError,
    Conflict,
    Forbidden,
    Invalid,
    LimitExceeded,
    NotFound,
    TimedOut,
    TooLarge,
    Unauthenticated,
    Unavailable,
    UnsupportedMediaType,
    UpstreamRefused,
)
from app.logs import where_raised

logger = structlog.stdlib.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
STATUSES: dict[type[AppError], int] = {
    NotFound: 404,
    Conflict: 409,
    Forbidden: 403,
    Unauthenticated: 401,
    UnsupportedMediaType: 415,
    TooLarge: 413,
    Invalid: 422,
    LimitExceeded: 429,
    UpstreamRefused: 502,
    Unavailable: 503,
    TimedOut: 504,
}
# What statements raise through SQLAlchemy, and connecting past it; `is_unavailable` knows which of them say "away".
DATABASE_ERRORS = (
    DBAPIError,
    PoolTimeout,
    ConnectionError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
RETRY_AFTER_SECONDS = 5
# What Starlette and FastAPI refuse by themselves.
FRAMEWORK_CODES = {400: "bad_request", 404: "route_not_found", 405: "method_not_allowed", 413: "too_large"}
FRAMEWORK_SENTENCES = {
    404: "There is no such path; /openapi.json lists those there are.",
    405: "This path does not have this method; the header Allow lists those it has.",
}


class ValidationFailed(Invalid):
    code = "validation_error"
    title = "The request does not have the expected shape"


class BadRequest(AppError):
    """The body cannot be read. The framework refuses it before any route is asked; this is for the catalogue of answers."""

    code = "bad_request"
    title = "Bad Request"


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"
    title = "The database is not available"


class InternalError(AppError):
    """Only for the catalogue of answers: what nobody foresaw has no kind."""

    code = "internal_error"
    title = "Internal error"


STATUSES[BadRequest] = 400


class BodyTooLarge(HTTPException):
    """A body over the limit. It is an HTTPException because the framework, which reads the body, turns all else into a 400."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(413, f"The request is larger than {limit_bytes} bytes.")
        self.limit_bytes = limit_bytes


class RequestTimeout(AppError):
    """The body of the request stood still for too long."""

    code = "request_timeout"
    title = "The request was not sent in time"


STATUSES[RequestTimeout] = 408


class BodyStoodStill(HTTPException):
    """As BodyTooLarge: raised where the framework reads."""

    def __init__(self, idle_seconds: float) -> None:
        super().__init__(408, f"The body of the request stood still for {idle_seconds:g} seconds.")
        self.idle_seconds = idle_seconds


class FieldError(BaseModel):
    """One reason why a request was refused."""

    field: str = Field(description="Where, as a dotted path: `body.settings.chunk_tokens`, `query.limit`.")
    message: str
    type: str = Field(description="Stable name of the rule that was broken.")


class Problem(BaseModel):
    """An error. `code` is stable for programs, `detail` is a sentence for people; further members are facts."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str


def status_of(error: type[AppError]) -> int:
    return next((STATUSES[kind] for kind in error.__mro__ if kind in STATUSES), 500)


def problem_body(
    status: int, code: str, title: str, detail: str, request_id: str, facts: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    standard = {
        "type": f"urn:trellis:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
    }
    # What every problem has stands first and cannot be replaced by a fact of the same name.
    return standard | {name: value for name, value in (facts or {}).items() if name not in standard}


def problem_response(
    request: Request, error: AppError, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    status = status or status_of(type(error))
    body = problem_body(status, error.reason, error.title, error.detail, request_id_of(request), error.facts)
    extra = {}
    if status == HTTPStatus.UNAUTHORIZED:
        extra["WWW-Authenticate"] = 'Bearer realm="trellis"'
    is_passing = status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)
    if is_passing or "retry_after_seconds" in error.facts:
        extra["Retry-After"] = str(error.facts.get("retry_after_seconds", RETRY_AFTER_SECONDS))
    return _answer(request, to_jsonable_python(body), {**extra, **(headers or {})})


def _answer(request: Request, body: dict[str, Any], headers: Mapping[str, str] | None) -> JSONResponse:
    """A problem, in the shape that the client of this path understands."""
    status: int = body["status"]
    if is_openai_path(request):
        return JSONResponse(openai_error(body), openai_status(status), headers=headers, media_type=JSON)
    return JSONResponse(body, status, headers=headers, media_type=MEDIA_TYPE)


def request_id_of(request: Request) -> str:
    return str(request.scope.get("trellis.request_id", ""))


def install_problem_handlers(app: FastAPI) -> None:
    """Make `app` answer every refusal as a problem. What no handler knows is left to the outermost middleware."""
    app.add_exception_handler(AppError, _on_app_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    for kind in DATABASE_ERRORS:
        app.add_exception_handler(kind, _on_database_error)


async def _on_app_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, AppError):
        raise error
    return problem_response(request, error)


async def _on_validation_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    if _has_foreign_body(request, error):
        refused = UnsupportedMediaType("Send the body as application/json.", accepted=["application/json"])
        return problem_response(request, refused)
    return problem_response(request, validation_problem(error.errors()))


def validation_problem(errors: Any) -> ValidationFailed:
    """The refusal for pydantic's `errors`. What was sent is not repeated: it may be long, or secret."""
    found = [
        FieldError(
            field=".".join(str(part) for part in item["loc"]),
            # pydantic puts the name of the exception before the sentences of our own rules.
            message=item["msg"].removeprefix("Value error, "),
            type=item["type"],
        )
        for item in errors
    ]
    first = found[0]
    return ValidationFailed(
        f"{first.field}: {first.message}" if len(found) == 1 else f"{len(found)} fields are not as they should be.",
        errors=[item.model_dump() for item in found],
    )


def _has_foreign_body(request: Request, error: RequestValidationError) -> bool:
    """Whether the body was not parsed because it was not declared as JSON."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = media_type == "application/json" or media_type.endswith("+json")
    return bool(media_type) and not is_json and any(item["loc"][:1] == ("body",) for item in error.errors())


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    if isinstance(error, BodyTooLarge):
        return problem_response(request, TooLarge(error.detail, limit_bytes=error.limit_bytes))
    if isinstance(error, BodyStoodStill):
        return problem_response(request, RequestTimeout(error.detail, idle_seconds=error.idle_seconds))
    code = FRAMEWORK_CODES.get(error.status_code, "http_error")
    title = HTTPStatus(error.status_code).phrase
    detail = FRAMEWORK_SENTENCES.get(error.status_code, error.detail) if error.detail == title else error.detail
    body = problem_body(error.status_code, code, title, detail, request_id_of(request))
    return _answer(request, body, error.headers)


async def _on_database_error(request: Request, error: Exception) -> JSONResponse:
    """A database that is away is a 503, a quota that it counts a 403; any other error of it is ours and goes on to be a 500."""
    if (quota := quota_of(error)) is not None:
        return problem_response(request, quota)
    if not is_unavailable(error):
        raise error
    logger.warning("database_unavailable", **where_raised(error))
    return problem_response(request, DatabaseUnavailable("The database does not answer; try again shortly."))


def problems(*errors: type[AppError]) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route that needs a key: what any such route may answer, and `errors`."""
    return public_problems(
        InvalidApiKey,
        TenantSuspended,
        TokenNotMapped,
        ValidationFailed,
        InternalError,
        DatabaseUnavailable,
        IssuerUnavailable,
        RateLimited,
        *errors,
    )


def operator_problems(*errors: type[AppError]) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route for operators."""
    return public_problems(InvalidOperatorSecret, ValidationFailed, InternalError, DatabaseUnavailable, *errors)


def public_problems(*errors: type[AppError]) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route: one entry a status, one example a code."""
    responses: dict[int | str, dict[str, Any]] = {}
    for error in errors:
        status = status_of(error)
        entry = responses.setdefault(
            status,
            {
                "description": HTTPStatus(status).phrase,
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}},
            },
        )
        entry["content"][MEDIA_TYPE]["examples"][error.code] = {"summary": error.title, "value": example_of(error)}
    return responses


def example_of(error: type[AppError]) -> dict[str, Any]:
    detail = (error.__doc__ or error.title).strip().split("\n")[0]
    if error is ValidationFailed:
        facts = {"errors": [{"field": "body.name", "message": "Field required", "type": "missing"}]}
        return problem_body(422, error.code, error.title, "body.name: Field required", "0f8fad5bd9cb469f", facts)
    return problem_body(status_of(error), error.code, error.title, detail, "0f8fad5bd9cb469f")
