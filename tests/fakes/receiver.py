"""A receiver of webhooks in the test's own process: keeps what it is sent and answers as it is told."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Receiver:
    """`answers` are the statuses of the next answers, one a request; then 204. A number below 100 is seconds of silence."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@asynccontextmanager
async def open_receiver(tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """With `tls` it is called `localhost`, over https."""
    receiver = Receiver()

    async def receive(request: web.Request) -> web.Response:
        receiver.received.append(
            ({name.lower(): value for name, value in request.headers.items()}, await request.read())
        )
        status = receiver.answers.pop(0) if receiver.answers else 204
        headers = {"Location": "/elsewhere"} if 300 <= status < 400 else {}
        return web.Response(status=status, headers=headers)

    application = web.Application()
    application.router.add_post("/{path:.*}", receive)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    receiver.url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
    try:
        yield receiver
    finally:
        await runner.cleanup()
