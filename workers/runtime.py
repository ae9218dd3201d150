"""One event loop with one opened `Worker` per process, for connections are bound to the loop that opened them.

Celery's threads hand coroutines to it and wait. It is made by the first job of a process and never before a fork.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import uvloop

from app.bootstrap import Worker, open_worker, start_traces
from app.collector import calm_collector
from app.logs import log_stray_error
from app.settings import Settings
from app.tracing import stop_tracing

Result = TypeVar("Result")
CLOSE_SECONDS = 30


class Runtime:
    """A thread that runs an event loop until `close`, and what is open on it."""

    def __init__(self, settings: Settings) -> None:
        self.process_id = os.getpid()
        self._loop = uvloop.new_event_loop()
        self._loop.set_exception_handler(log_stray_error)
        self._thread = threading.Thread(target=self._loop.run_forever, name="event-loop", daemon=True)
        self._thread.start()
        start_traces("worker", settings)
        self._stack = AsyncExitStack()
        self._running: set[asyncio.Task[Any]] = set()
        self._worker: Worker = self._submit(self._stack.enter_async_context(open_worker(settings))).result()
        calm_collector()

    def run(self, work: Callable[[Worker], Coroutine[Any, Any, Result]]) -> Result:
        """Run a job's coroutine on the loop and wait for it."""
        return self._submit(self._tracked(work)).result()

    def cancel_jobs(self) -> None:
        """Cancel the jobs that run now; each hands its claim back before it ends."""
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._running])

    def close(self) -> None:
        """Close what is open and end the thread; no job may run any more."""
        self._submit(self._stack.aclose()).result(CLOSE_SECONDS)
        stop_tracing()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)
        self._loop.close()

    def _submit(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def _tracked(self, work: Callable[[Worker], Coroutine[Any, Any, Result]]) -> Result:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine of run_coroutine_threadsafe is a task
        self._running.add(task)
        try:
            return await work(self._worker)
        finally:
            self._running.discard(task)


_lock = threading.Lock()
_runtime: Runtime | None = None


def current(settings: Settings) -> Runtime:
    """This process's runtime, made on first use; one that was inherited through a fork is not ours."""
    global _runtime
    with _lock:
        if _runtime is None or _runtime.process_id != os.getpid():
            _runtime = Runtime(settings)
        return _runtime


def stop_jobs_after(seconds: float) -> None:
    """Let running jobs finish for so long, then cancel them: a shutdown must not take as long as the longest job."""
    if _runtime is not None and _runtime.process_id == os.getpid():
        timer = threading.Timer(seconds, _runtime.cancel_jobs)
        timer.daemon = True
        timer.start()


def close() -> None:
    """Close this process's runtime if it has one."""
    global _runtime
    with _lock:
        if _runtime is not None and _runtime.process_id == os.getpid():
            _runtime.close()
            _runtime = None
