"""Errors that nobody waits for: those of the engine's abandoned tasks when a server goes away, and faults."""

import asyncio
import gc
import inspect
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any

import asyncpg
import lightrag.operate
import pytest
from structlog.testing import capture_logs

import app.retrieval.lightrag.extraction
from app.logs import log_stray_error


async def own(error: Exception) -> None:
    raise error


def standing_in(module: ModuleType) -> Callable[[Exception], Coroutine[Any, Any, None]]:
    """The same function, as if it stood there."""
    found: dict[str, Any] = {}
    exec(compile(inspect.getsource(own), str(module.__file__), "exec"), found)  # noqa: S102
    made: Callable[[Exception], Coroutine[Any, Any, None]] = found["own"]
    return made


@pytest.mark.parametrize(
    ("work", "error", "told"),
    [
        (standing_in(lightrag.operate), ConnectionResetError(), "stray_outage"),
        (standing_in(lightrag.operate), asyncpg.CannotConnectNowError(), "stray_outage"),
        (standing_in(lightrag.operate), ValueError(), "stray_error"),
        (standing_in(app.retrieval.lightrag.extraction), ConnectionResetError(), "stray_error"),
        (own, ConnectionResetError(), "stray_error"),
    ],
)
async def test_an_outage_is_no_fault_for_the_engine_s_abandoned_tasks_only(
    work: Callable[[Exception], Coroutine[Any, Any, None]], error: Exception, told: str
) -> None:
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(log_stray_error)
    try:
        with capture_logs() as lines:
            task = asyncio.create_task(work(error))
            await asyncio.wait([task])
            del task
            gc.collect()
    finally:
        loop.set_exception_handler(before)
    assert [line["event"] for line in lines] == [told]
