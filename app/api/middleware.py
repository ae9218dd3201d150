"""What surrounds every request: its id, its line in the log, the limit of its body, and the last answer when all fails."""

import asyncio
import re
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from uuid import UUID, uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import tracing
from app.api.problems import BodyStoodStill, BodyTooLarge, InternalError, problem_response
from app.db.acting import nobody_acts
from app.logs import where_raised
from app.metrics import METHODS, observe_request

logger = structlog.stdlib.get_logger("app.api.requests")

REQUEST_ID = "trellis.request_id"
BODY_LIMIT = "trellis.body_limit"
# Enough for every JSON request but an upload, which raises its own limit once the caller is known.
DEFAULT_BODY_LIMIT = 2**20
# Never sent: the caller is gone. Only the log shows it.
CLIENT_CLOSED_REQUEST = 499
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# Pages with scripts of their own.
DOCUMENTATION = frozenset({"/docs", "/docs/oauth2-redirect"})
SERVER_ERROR = 500
UNOBSERVED = frozenset({"/healthz", "/readyz", "/metrics"})
TOLD_IDS = ("request_id", "tenant_id", "workspace_id", "document_id")
ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


class RequestContext:
    """Gives each request an id (the caller's own, if it is a plain one), logs it, and answers what nobody caught."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        offered = Headers(scope=scope).get("x-request-id", "")
        request_id = offered if ACCEPTABLE_ID.fullmatch(offered) else uuid4().hex
        scope[REQUEST_ID] = request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        # Those who watch ask every few seconds, for ever.
        is_watched = scope["path"] in UNOBSERVED
        with nobody_acts(), nullcontext(tracing.UNTRACED) if is_watched else _span(scope) as span:
            await self._serve(scope, receive, send, request_id, span)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, request_id: str, span: tracing.Span) -> None:
        started = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except ClientDisconnect:
            status = CLIENT_CLOSED_REQUEST
        except Exception as error:
            logger.error("request_crashed", **where_raised(error))
            if status:
                raise  # Half an answer is out; only the server can still break the connection.
            problem = InternalError("Something went wrong on our side. Quote the request id when you report it.")
            await problem_response(Request(scope), problem)(scope, receive, send_with_id)
        finally:
            seconds, route = time.perf_counter() - started, _route_of(scope)
            _note_document(scope)
            logger.info(
                "request", method=scope["method"], route=route, status=status, milliseconds=round(seconds * 1000, 1)
            )
            if scope["path"] not in UNOBSERVED:
                observe_request(scope["method"], route, status, seconds)
                span.note(_facts(route, status), name=f"{_method_of(scope)} {route}")


def _route_of(scope: Scope) -> str:
    """The template of the route: the path itself may hold names from documents."""
    return str(getattr(scope.get("route"), "path_format", "none"))


def _note_document(scope: Scope) -> None:
    """The document that the path names, if what stands there is an id."""
    with suppress(KeyError, ValueError):
        structlog.contextvars.bind_contextvars(document_id=str(UUID(scope["path_params"]["document_id"])))


def _method_of(scope: Scope) -> str:
    return scope["method"] if scope["method"] in METHODS else "OTHER"


def _span(scope: Scope) -> AbstractContextManager[tracing.Span]:
    """In the caller's trace, if it names one."""
    parent = Headers(scope=scope).get("traceparent")
    carrier = {"traceparent": parent} if parent is not None else {}
    method = _method_of(scope)
    return tracing.span(method, {"http.request.method": method}, kind="server", parent=carrier)


def _facts(route: str, status: int) -> tracing.Attributes:
    """What is known of a request at its end; the ids are those of its log lines."""
    bound = structlog.contextvars.get_contextvars()
    ids = {f"trellis.{name}": str(bound[name]) for name in TOLD_IDS if name in bound}
    failed = {"error.type": str(status)} if status >= SERVER_ERROR else {}
    return {"http.route": route, "http.response.status_code": status, **ids, **failed}


class BodyLimit:
    """Refuses a body over the limit in `scope`, before it is read where its length is declared, else while it is, and one
    that stands still."""

    def __init__(self, app: ASGIApp, idle_seconds: float) -> None:
        self.app = app
        self._idle_seconds = idle_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope.setdefault(BODY_LIMIT, DEFAULT_BODY_LIMIT)
        declared = Headers(scope=scope).get("content-length", "0")
        size = int(declared) if declared.isdecimal() else 0
        received, is_whole = 0, False

        async def receive_limited() -> Message:
            nonlocal received, is_whole
            limit: int = scope[BODY_LIMIT]
            if size > limit:
                raise BodyTooLarge(limit)
            message = await self._receive(receive, is_whole)
            is_whole = is_whole or not message.get("more_body", False)
            received += len(message.get("body", b"")) if message["type"] == "http.request" else 0
            if received > limit:
                raise BodyTooLarge(limit)
            return message

        await self.app(scope, receive_limited, send)

    async def _receive(self, receive: Receive, is_whole: bool) -> Message:
        """Behind the whole body only the end of the connection is waited for, which may take as long as it likes."""
        if is_whole:
            return await receive()
        try:
            async with asyncio.timeout(self._idle_seconds):
                return await receive()
        except TimeoutError:
            raise BodyStoodStill(self._idle_seconds) from None


class SecurityHeaders:
    """What browsers are told of every answer: it is data, of nobody else, and is not kept."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"] in DOCUMENTATION:
                    headers["Content-Security-Policy"] = "frame-ancestors 'none'"
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)
