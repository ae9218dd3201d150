"""Parses one file in a child process that can neither hang nor exhaust the caller.

The parsers are never imported here: a hostile file meets them only in a process with limits,
without secrets in its environment, that is killed with its whole group at the time limit.
"""

import asyncio
import os
import signal
import sys
import tempfile
from contextlib import suppress
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


async def parse_file(path: Path, filename: str, media_type: str, limits: ParseLimits) -> SourceText:
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
        status = await _run_child(job_path, result_path, limits)
        if status != 0:
            raise _failure_of(status, limits)
        return await asyncio.to_thread(read_result, result_path)


def _read_head(path: Path) -> tuple[Path, bytes]:
    with path.open("rb") as file:
        return path.resolve(), file.read(HEAD_BYTES)


async def _run_child(job_path: Path, result_path: Path, limits: ParseLimits) -> int:
    """Exit status of the child; negative for the signal that ended it. Raises parse_timeout at the limit."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "app.parsing.child",
        str(job_path),
        str(result_path),
        cwd=job_path.parent,
        env=_environment(job_path.parent),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(limits.timeout_seconds):
            return await process.wait()
    except TimeoutError:
        raise _timeout_failure(limits) from None
    finally:
        # Also reached when the awaiting task is cancelled; a group that is gone already is fine.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _environment(scratch: Path) -> dict[str, str]:
    """What the child needs and nothing else: no keys, no database addresses."""
    return {
        "PATH": os.defpath,
        "PYTHONPATH": str(_CODE_ROOT),
        "PYTHONUTF8": "1",
        "TMPDIR": str(scratch),
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
