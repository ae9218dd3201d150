"""A receiver of webhooks in the test's own process: keeps what it is sent and answers as it is told."""

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
async def open_receiver() -> AsyncIterator[Receiver]:
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
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        await runner.cleanup()
