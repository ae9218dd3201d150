"""Parses each file in a child process of its own that can neither hang nor exhaust the caller.

The parsers are never imported here: a hostile file meets them only in a process with limits,
without secrets in its environment, that is killed with its whole group at the time limit.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Final

from app.parsing.child import memory_failure, write_job
from app.parsing.errors import ParseFailed
from app.parsing.formats import HEAD_BYTES, detect_format, parse_media_type
from app.parsing.job import ParseJob, ParseLimits
from app.parsing.wire import read_result
from app.text.document import SourceText

# How the folders of this package and of its callers begin, in the host's temporary folder; killed processes leave them.
ORIGINAL_PREFIX: Final = "trellis-original-"
PARSE_PREFIX: Final = "trellis-parse-"
SCRATCH_PREFIXES: Final = (ORIGINAL_PREFIX, PARSE_PREFIX)
_CODE_ROOT: Final = Path(__file__).resolve().parents[2]


class FileParser:
    """Parses files of one event loop; its host process starts with the first file, and again should it have ended."""

    def __init__(self) -> None:
        self._host: _Host | None = None
        self._starting = asyncio.Lock()

    async def parse(self, path: Path, filename: str, media_type: str, limits: ParseLimits) -> SourceText:
        """The text of the file at `path`, whose format follows from `filename`, `media_type` and its bytes.

        Raises ParseFailed (see errors.py for its codes). Cancelling the awaiting task kills the child.
        """
        absolute, head = await asyncio.to_thread(_read_head, path)
        accepted = detect_format(filename, media_type, head)
        if not head:
            raise ParseFailed("empty_document", "The file is empty (0 bytes). Upload it again.")
        job = ParseJob(absolute, accepted.name, parse_media_type(media_type)[1], limits)
        with tempfile.TemporaryDirectory(prefix=PARSE_PREFIX) as folder:
            job_path, result_path = Path(folder) / "job.json", Path(folder) / "result.json"
            write_job(job_path, job)
            host = await self._running_host()
            try:
                async with asyncio.timeout(limits.timeout_seconds):
                    status = await host.run(job_path, result_path)
            except TimeoutError:
                raise _timeout_failure(limits) from None
            if status != 0:
                raise _failure_of(status, limits)
            return await asyncio.to_thread(read_result, result_path)

    async def aclose(self) -> None:
        """End the host with whatever still runs under it."""
        if self._host is not None:
            await self._host.close()
            self._host = None

    async def _running_host(self) -> "_Host":
        async with self._starting:
            if self._host is not None and self._host.has_ended:
                await self.aclose()
            if self._host is None:
                self._host = await _Host.start()
            return self._host


class _Host:
    """The process of `host.py`, seen from here."""

    def __init__(self, process: asyncio.subprocess.Process, commands: asyncio.StreamWriter) -> None:
        self._process = process
        self._commands = commands
        self._numbers = count()
        self._running: dict[int, asyncio.Future[int]] = {}
        self._listener = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls) -> "_Host":
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "app.parsing.host",
            env=_environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None  # noqa: S101 - it was asked for
        return cls(process, process.stdin)

    @property
    def has_ended(self) -> bool:
        return self._listener.done()

    async def run(self, job_path: Path, result_path: Path) -> int:
        """Exit status of the child; negative for the signal that ended it. A caller that is cancelled kills it."""
        number = next(self._numbers)
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._running[number] = ended
        self._tell({"run": number, "job": str(job_path), "result": str(result_path)})
        try:
            return await asyncio.shield(ended)
        finally:
            if not ended.done():
                self._tell({"stop": number})
                await asyncio.wait([ended])
                # Whoever stopped waiting for it does not want to know.
                ended.exception()

    async def close(self) -> None:
        self._commands.close()
        await self._process.wait()
        await self._listener

    def _tell(self, command: dict[str, object]) -> None:
        if self.has_ended:
            self._give_up()
        else:
            self._commands.write(json.dumps(command).encode() + b"\n")

    async def _listen(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        while line := await self._process.stdout.readline():
            report = json.loads(line)
            self._running.pop(report["ended"]).set_result(report["status"])
        self._give_up()

    def _give_up(self) -> None:
        while self._running:
            self._running.popitem()[1].set_exception(RuntimeError("the parsing process has ended"))


def _read_head(path: Path) -> tuple[Path, bytes]:
    with path.open("rb") as file:
        return path.resolve(), file.read(HEAD_BYTES)


def _environment() -> dict[str, str]:
    """What host and children need and nothing else: no keys, no database addresses."""
    return {
        "PATH": os.defpath,
        "PYTHONPATH": str(_CODE_ROOT),
        "PYTHONUTF8": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }


def _failure_of(status: int, limits: ParseLimits) -> Exception:
    if status > 0:
        # The child reports whatever a document does to it; only its own start can end like this.
        return RuntimeError(f"the parsing process could not start: exit status {status}")
    if -status == signal.SIGXCPU or -status == signal.SIGALRM:
        return _timeout_failure(limits)
    if -status == signal.SIGKILL:
        # Nobody here sends it before the time is up: the kernel does when the machine runs out of memory.
        return memory_failure(limits)
    return ParseFailed(
        "broken_document",
        "The file made its parser crash: it is damaged, or needs more memory than allowed. "
        "Open it in its own program, save it again and upload the copy.",
        exit_status=status,
    )


def _timeout_failure(limits: ParseLimits) -> ParseFailed:
    return ParseFailed(
        "parse_timeout",
        f"Reading the document took longer than {limits.timeout_seconds:g} seconds. Split it into smaller documents.",
        timeout_seconds=limits.timeout_seconds,
    )
