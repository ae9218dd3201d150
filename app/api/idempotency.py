"""The header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header) for every POST that changes something.

A middleware listens to the request's body and its answer; a dependency of the whole of `/v1` decides, once the caller is
known. So a new route joins by itself; one that only reads says `openapi_extra=READS_ONLY`. Answers that say that something
was done are kept. Refusals and failures had no effect, so their key is free again.
"""

import asyncio
import re
from collections.abc import MutableMapping
from contextlib import suppress
from hashlib import sha256
from typing import Any
from uuid import UUID

import structlog
from fastapi import FastAPI, Request, Response
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.deps import ContainerDep, VerifiedCaller
from app.api.middleware import BODY_LIMIT
from app.api.problems import validation_problem
from app.db.base import TenantId
from app.db.session import CONNECTION_ERRORS
from app.domain.idempotency.errors import IdempotencyKeyReused
from app.domain.idempotency.repository import Name
from app.domain.idempotency.service import IdempotencyService, KeptAnswer

logger = structlog.stdlib.get_logger(__name__)

HEADER = "Idempotency-Key"
READS_ONLY = {"x-reads-only": True}
EXCHANGE = "trellis.idempotency"
REPLAYED = "Idempotent-Replayed"
KEPT_HEADERS = ("content-type", "location")
# A structured string as the draft has it, or the same without its quotes, as most clients send it.
ACCEPTABLE_KEY = re.compile(r'"[\x20-\x21\x23-\x5b\x5d-\x7e]{1,255}"|[\x21\x23-\x5b\x5d-\x7e]{1,255}')


class BodyDigest:
    """SHA-256 of a body that comes in pieces, whatever boundary its client made up for the parts of a form."""

    def __init__(self, content_type: str) -> None:
        found = re.search(r'boundary="?([^";]+)', content_type, re.IGNORECASE)
        self._boundary = found[1].strip().encode() if found else b""
        self._tail = b""
        self._hash = sha256(re.sub(r"boundary=.*", "", content_type, flags=re.IGNORECASE).strip().lower().encode())

    def update(self, piece: bytes) -> None:
        if not self._boundary:
            self._hash.update(piece)
            return
        known = (self._tail + piece).replace(self._boundary, b"\0boundary\0")
        keep = len(self._boundary) - 1
        self._hash.update(known[:-keep] if keep else known)
        self._tail = known[-keep:] if keep else b""

    def digest(self) -> bytes:
        final = self._hash.copy()
        final.update(self._tail)
        return final.digest()


class Exchange:
    """One request with a key, and its answer on the way out."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, key: str, content_type: str) -> None:
        self.key = key
        self._scope = scope
        self._receive = receive
        self._send = send
        self._body = BodyDigest(content_type)
        self._is_read = False
        self._service: IdempotencyService | None = None
        self._tenant_id = TenantId(UUID(int=0))
        self._owner: UUID | None = None
        self._beat: asyncio.Task[None] | None = None
        self._start: MutableMapping[str, Any] = {}
        self._answer = b""

    @property
    def name(self) -> str:
        """Method and path, as what is asked for is part of the fingerprint only in its query and body."""
        return f"{self._scope['method']} {self._scope['path']}"

    async def begin(self, service: IdempotencyService, tenant_id: TenantId, caller: str) -> KeptAnswer | None:
        """Take the key for this request, or give the answer that was kept under it. Raises IdempotencyInProgress."""
        found = await service.begin(tenant_id, Name(caller, self.key, self.name))
        if isinstance(found, KeptAnswer):
            return found
        self._service, self._tenant_id, self._owner = service, tenant_id, found
        self._beat = asyncio.create_task(self._keep_alive(service, found))
        return None

    async def fingerprint(self) -> bytes:
        """Of the whole request; reads what is left of its body."""
        while not self._is_read:
            await self.receive()
        return sha256(self._scope["query_string"] + b"\0" + self._body.digest()).digest()

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._body.update(message.get("body", b""))
            self._is_read = self._is_read or not message.get("more_body", False)
        else:
            self._is_read = True
        return message

    async def send(self, message: Message) -> None:
        """Hold an answer that is to be kept until it is; let any other pass."""
        if self._owner is None:
            await self._send(message)
        elif message["type"] == "http.response.start":
            self._start = message
            if not 200 <= message["status"] < 300:
                await self.release()
                await self._send(message)
        elif message["type"] == "http.response.body":
            self._answer += message.get("body", b"")
            if not message.get("more_body", False):
                await self._finish()
                await self._send(self._start)
                await self._send({"type": "http.response.body", "body": self._answer})

    async def release(self) -> None:
        """Give the key back, if it is still taken for this request."""
        if self._owner is not None and self._service is not None:
            owner, self._owner = self._owner, None
            # The database is away: the lease runs out by itself.
            with suppress(*CONNECTION_ERRORS):
                await self._service.release(self._tenant_id, owner)
        await self._stop_beat()

    async def _finish(self) -> None:
        assert self._service is not None and self._owner is not None  # noqa: S101, PT018 - `send` has asked
        owner, self._owner = self._owner, None
        headers = {name: value for name, value in Headers(raw=self._start["headers"]).items() if name in KEPT_HEADERS}
        answer = KeptAnswer(await self.fingerprint(), self._start["status"], headers, self._answer)
        try:
            await self._service.finish(self._tenant_id, owner, answer)
        except CONNECTION_ERRORS as error:
            logger.error("idempotency_not_kept", error_type=type(error).__name__)
        await self._stop_beat()

    async def _keep_alive(self, service: IdempotencyService, owner: UUID) -> None:
        while True:
            await asyncio.sleep(service.lease_seconds / 3)
            with suppress(*CONNECTION_ERRORS):
                await service.extend(self._tenant_id, owner)

    async def _stop_beat(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
            await asyncio.wait([self._beat])


class Idempotency:
    """Attends every POST that has the header."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if scope.get("method") != "POST" or HEADER not in headers:
            await self.app(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send, headers[HEADER], headers.get("content-type", ""))
        scope[EXCHANGE] = exchange
        try:
            await self.app(scope, exchange.receive, exchange.send)
        finally:
            await exchange.release()


class Replayed(Exception):
    """Not an error: the request was carried out before, and this is what was answered then."""

    def __init__(self, answer: KeptAnswer) -> None:
        super().__init__("answered before")
        self.answer = answer


async def idempotent(request: Request, caller: VerifiedCaller, container: ContainerDep) -> None:
    """Ends a request that was carried out before, or must not be. Raises ValidationFailed, IdempotencyInProgress,
    IdempotencyKeyReused or Replayed."""
    exchange: Exchange | None = request.scope.get(EXCHANGE)
    if exchange is None or READS_ONLY.items() <= (request.scope["route"].openapi_extra or {}).items():
        return
    if not ACCEPTABLE_KEY.fullmatch(exchange.key):
        message = "Send 1 to 255 printable ASCII characters without quotes and backslashes inside"
        raise validation_problem([{"loc": ("header", HEADER), "msg": message, "type": "string_pattern_mismatch"}])
    exchange.key = exchange.key.strip('"')
    settings = container.settings
    service = IdempotencyService(
        container.database, settings.secret_key,
        lease_seconds=settings.lease_seconds, keep_seconds=settings.idempotency_seconds,
    )  # fmt: skip
    kept = await exchange.begin(service, caller.tenant_id, caller.name)
    if kept is not None:
        # The route, which is not reached, would have set its own limit.
        request.scope[BODY_LIMIT] = max(settings.max_request_bytes, settings.max_bulk_bytes)
        if await exchange.fingerprint() != kept.fingerprint:
            raise IdempotencyKeyReused("This Idempotency-Key was used here for another request; make a new key.")
        raise Replayed(kept)


def install_idempotency(app: FastAPI) -> None:
    """To be called before other middleware is added, which then stands outside of it."""
    app.add_middleware(Idempotency)
    app.add_exception_handler(Replayed, _on_replayed)


async def _on_replayed(_: Request, error: Exception) -> Response:
    assert isinstance(error, Replayed)  # noqa: S101 - registered for it
    answer = error.answer
    return Response(answer.body, answer.status, headers={**answer.headers, REPLAYED: "true"})
