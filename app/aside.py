"""Runs pure functions in a process beside this one: `python -m app.aside`, started with the first of them.

Most of a worker's own work is reading text. In a thread it would hold the interpreter's lock against the event loop, on
which all documents of the process depend.
"""

import asyncio
import os
import pickle
import struct
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TypeVar

from app.collector import calm_collector

R = TypeVar("R")

_CODE_ROOT: Final = Path(__file__).resolve().parents[1]
# Before each message its length in bytes.
_LENGTH: Final = struct.Struct("!Q")


class RunAside(Protocol):
    """`asyncio.to_thread`, or `Aside.run`."""

    async def __call__(self, function: Callable[..., R], /, *arguments: Any) -> R: ...


class Aside:
    """One helper process of one event loop; it works on one call after the other."""

    def __init__(self) -> None:
        self._helper: _Helper | None = None
        self._starting = asyncio.Lock()

    async def run(self, function: Callable[..., R], /, *arguments: Any) -> R:
        """What `function`, which a module has under its name, returns or raises.

        Raises RuntimeError if the process ends meanwhile; the next call starts another one.
        """
        async with self._starting:
            if self._helper is not None and self._helper.has_ended:
                await self.aclose()
            if self._helper is None:
                self._helper = await _Helper.start()
        result: R = await self._helper.call((function, arguments))
        return result

    async def aclose(self) -> None:
        """End the process, in the midst of a call if it is at one: who wanted the answer is told that it has ended."""
        if self._helper is not None:
            await self._helper.close()
            self._helper = None


class _Helper:
    """The process, seen from here."""

    def __init__(
        self, process: asyncio.subprocess.Process, calls: asyncio.StreamWriter, answers: asyncio.StreamReader
    ) -> None:
        self._process = process
        self._calls = calls
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._listener = asyncio.create_task(self._listen(answers))

    @classmethod
    async def start(cls) -> "_Helper":
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "app.aside",
            # No keys and no addresses of databases: it needs none.
            env={"PATH": os.defpath, "PYTHONPATH": str(_CODE_ROOT), "PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None  # noqa: S101 - both were asked for
        assert process.stdout is not None  # noqa: S101
        return cls(process, process.stdin, process.stdout)

    @property
    def has_ended(self) -> bool:
        return self._listener.done()

    async def call(self, what: object) -> Any:
        if self.has_ended:
            raise _ended()
        message = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._calls.write(_LENGTH.pack(len(message)) + message)
        return await answer

    async def close(self) -> None:
        if self._waiting and not self.has_ended:
            self._process.kill()
        self._calls.close()
        await self._process.wait()
        await self._listener

    async def _listen(self, answers: asyncio.StreamReader) -> None:
        try:
            while True:
                (length,) = _LENGTH.unpack(await answers.readexactly(_LENGTH.size))
                # Written by our own code, from what pure functions returned.
                is_result, value = pickle.loads(await answers.readexactly(length))  # noqa: S301
                answer = self._waiting.popleft()
                if answer.done():
                    continue
                if is_result:
                    answer.set_result(value)
                else:
                    answer.set_exception(value)
        except asyncio.IncompleteReadError:
            while self._waiting:
                answer = self._waiting.popleft()
                if not answer.done():
                    answer.set_exception(_ended())


def _ended() -> RuntimeError:
    return RuntimeError("the process that reads texts has ended")


def serve(calls: BinaryIO, answers: BinaryIO) -> None:
    """Answer calls until there are no more."""
    while header := calls.read(_LENGTH.size):
        # Written by the process that started this one.
        function, arguments = pickle.loads(calls.read(_LENGTH.unpack(header)[0]))  # noqa: S301
        try:
            answer = pickle.dumps((True, function(*arguments)), pickle.HIGHEST_PROTOCOL)
        # Whatever it is belongs to who called.
        except Exception as error:
            answer = pickle.dumps((False, _portable(error)))
        answers.write(_LENGTH.pack(len(answer)) + answer)
        answers.flush()


def _portable(error: Exception) -> Exception:
    """The error, or its class's name where it does not survive the way."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - written a moment ago
    except Exception:
        return RuntimeError(f"{type(error).__name__} while reading a text")
    return error


if __name__ == "__main__":
    calm_collector()
    serve(sys.stdin.buffer, sys.stdout.buffer)
