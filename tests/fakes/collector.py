"""A collector of traces in the test's own process: an OTLP/HTTP endpoint that keeps the spans it is sent."""

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class KeptSpan:
    """`service` is the process that sent it; ids are in hexadecimal."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    links: tuple[str, ...]


@dataclass
class Collector:
    """`raw` is all that was sent, as it came."""

    endpoint: str = ""
    raw: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    spans: list[KeptSpan] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        self.raw += body
        message = ExportTraceServiceRequest.FromString(body)
        for of_process in message.resource_spans:
            service = next(
                each.value.string_value for each in of_process.resource.attributes if each.key == "service.name"
            )
            for of_scope in of_process.scope_spans:
                self.spans += [_kept(service, span) for span in of_scope.spans]


def _kept(service: str, span: Any) -> KeptSpan:
    attributes = {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}
    return KeptSpan(
        service, span.name, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), attributes,
        tuple(link.trace_id.hex() for link in span.links),
    )  # fmt: skip


@asynccontextmanager
async def open_collector() -> AsyncIterator[Collector]:
    collector = Collector()

    async def receive(request: web.Request) -> web.Response:
        body = await request.read()
        collector.headers.update({name.lower(): value for name, value in request.headers.items()})
        collector.take(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
        return web.Response(content_type="application/x-protobuf")

    application = web.Application(client_max_size=2**26)
    application.router.add_post("/v1/traces", receive)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    collector.endpoint = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
    try:
        yield collector
    finally:
        await runner.cleanup()
