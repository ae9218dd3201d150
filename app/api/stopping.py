"""Tells streams that the server is told to stop: it waits for them, and they would not end by themselves."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def noticing_signals(stopping: asyncio.Event) -> Iterator[None]:
    """Set `stopping` when a signal arrives, and pass the signal on to the server's own handler.

    The application's shutdown comes too late for this: the server sends it once all connections are closed.
    """
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def notice(number: int, frame: FrameType | None) -> Any:
        loop.call_soon_threadsafe(stopping.set)
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number, handler in before.items():
        if callable(handler):
            signal.signal(number, notice)
    try:
        yield
    finally:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, handler)
