"""What surrounds every request: its id, its line in the log, the limit of its body, and the last answer when all fails."""

import re
import time
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import BodyTooLarge, InternalError, problem_response
from app.db.acting import nobody_acts
from app.logs import where_raised

logger = structlog.stdlib.get_logger("app.api.requests")

REQUEST_ID = "trellis.request_id"
BODY_LIMIT = "trellis.body_limit"
# Enough for every JSON request but an upload, which raises its own limit once the caller is known.
DEFAULT_BODY_LIMIT = 2**20
# Never sent: the caller is gone. Only the log shows it.
CLIENT_CLOSED_REQUEST = 499
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
        with nobody_acts():
            await self._serve(scope, receive, send, request_id)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
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
            logger.info(
                "request", method=scope["method"], route=_route_of(scope), status=status,
                milliseconds=round((time.perf_counter() - started) * 1000, 1),
            )  # fmt: skip


def _route_of(scope: Scope) -> str:
    """The template of the route: the path itself may hold names from documents."""
    return str(getattr(scope.get("route"), "path_format", "none"))


class BodyLimit:
    """Refuses a body over the limit in `scope`, before it is read where its length is declared, else while it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope.setdefault(BODY_LIMIT, DEFAULT_BODY_LIMIT)
        declared = Headers(scope=scope).get("content-length", "0")
        size = int(declared) if declared.isdecimal() else 0
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            limit: int = scope[BODY_LIMIT]
            if size > limit:
                raise BodyTooLarge(limit)
            message = await receive()
            received += len(message.get("body", b"")) if message["type"] == "http.request" else 0
            if received > limit:
                raise BodyTooLarge(limit)
            return message

        await self.app(scope, receive_limited, send)
