"""The application behind a real server: in-process transports neither stream nor hang up."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from app.bootstrap import Container
from app.main import create_app


@asynccontextmanager
async def serving(container: Container, *, send_buffer: int | None = None) -> AsyncIterator[str]:
    """Its URL. With `send_buffer` (bytes) a client that does not read is soon felt."""
    with socket.socket() as listener:
        if send_buffer is not None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(create_app(container), log_config=None, lifespan="on"))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.02)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        await task
