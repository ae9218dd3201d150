"""Tells requests that the server is told to stop: it waits for them, and not all would end by themselves in time."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Stopping:
    """`begun` when the process was told to end; `overdue` when it should have ended by itself, and breaks off what it answers."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    overdue: asyncio.Event = field(default_factory=asyncio.Event)


@contextmanager
def noticing_signals(stopping: Stopping, grace_seconds: float) -> Iterator[None]:
    """Tell `stopping` when a signal arrives, and pass the signal on to the server's own handler.

    The application's shutdown comes too late for this: the server sends it once all connections are closed.
    """
    loop = asyncio.get_running_loop()

    def begin() -> None:
        if not stopping.begun.is_set():
            stopping.begun.set()
            loop.call_later(grace_seconds, stopping.overdue.set)

    before = {number: signal.getsignal(number) for number in SIGNALS}

    def notice(number: int, frame: FrameType | None) -> Any:
        loop.call_soon_threadsafe(begin)
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
