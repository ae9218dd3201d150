"""What the child process of one parse does, forked for it by `host.py`.

Owns its limits (memory, CPU seconds, an alarm for the case that its parent died) and turns whatever a
parser raises into a failure with a code. It imports only the parser it needs.
"""

import importlib
import json
import math
import resource
import signal
from pathlib import Path
from types import ModuleType

from app.parsing.builder import SourceBuilder
from app.parsing.errors import ParseFailed
from app.parsing.job import ParseJob, ParseLimits
from app.parsing.wire import write_failure, write_source
from app.text.document import SourceText

_GRACE_SECONDS = 5


def parse_job(job: ParseJob, result: Path) -> int:
    """Parse under the job's limits and write the outcome to `result`; the process's exit status."""
    # Outside the handlers below: a library that is missing is no fault of the document.
    parser = importlib.import_module(f"app.parsing.parsers.{job.format_name}_file")
    _limit_resources(job.limits)
    try:
        write_source(result, _parse(parser, job))
    except ParseFailed as failure:
        write_failure(result, failure)
    except MemoryError:
        write_failure(result, memory_failure(job.limits))
    except RecursionError:
        write_failure(result, ParseFailed("broken_document", "The document is nested too deeply to be read."))
    # The outermost handler of this process: parsers raise anything for a damaged file.
    except Exception as error:
        write_failure(
            result,
            ParseFailed(
                "broken_document",
                f"The file is damaged or not really a {job.format_name.upper()} document. "
                "Open it in its own program, save it again and upload the copy.",
                exception=type(error).__name__,
            ),
        )
    return 0


def write_job(path: Path, job: ParseJob) -> None:
    limits = job.limits
    value = {
        "path": str(job.path),
        "format": job.format_name,
        "charset": job.charset,
        "limits": [limits.timeout_seconds, limits.memory_bytes, limits.max_text_chars, limits.max_pages],
    }
    path.write_text(json.dumps(value), encoding="utf-8")


def read_job(path: Path) -> ParseJob:
    value = json.loads(path.read_text(encoding="utf-8"))
    timeout, memory, characters, pages = value["limits"]
    limits = ParseLimits(timeout, memory, characters, pages)
    return ParseJob(Path(value["path"]), value["format"], value["charset"], limits)


def memory_failure(limits: ParseLimits) -> ParseFailed:
    return ParseFailed(
        "parse_memory",
        f"Reading the document needs more than the {limits.memory_bytes // 1_000_000:,} MB of memory allowed. "
        "Split it, or remove large pictures.",
        memory_bytes=limits.memory_bytes,
    )


def _parse(parser: ModuleType, job: ParseJob) -> SourceText:
    builder = SourceBuilder(job.limits.max_text_chars)
    parser.parse(job, builder)
    source = builder.build()
    if not source.blocks:
        raise ParseFailed("blank_document", "The document holds no text, only white space or empty pages.")
    return source


def _limit_resources(limits: ParseLimits) -> None:
    cpu_seconds = math.ceil(limits.timeout_seconds) + 1
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # JSON spends up to six bytes on a character, and each block some forty more.
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.max_text_chars * 12 + 10_000_000,) * 2)
    signal.alarm(math.ceil(limits.timeout_seconds) + _GRACE_SECONDS)
