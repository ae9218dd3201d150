"""The process that forks a child for every parse: `python -m app.parsing.host`, told by lines of JSON what to do.

`{"run": 7, "job": JOB.json, "result": RESULT.json}` starts a child, `{"stop": 7}` kills it with its group, and
`{"ended": 7, "status": 0}` says how it ended. Starting an interpreter costs a hundred milliseconds, a fork three: the
parsers are imported here, once. No file is opened here, so what one holds meets a process of its own.
"""

import importlib
import json
import os
import select
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from app.parsing.child import parse_job, read_job

_CHUNK: Final = 65_536


class Host:
    """Serves commands until their pipe is closed, and takes its children along."""

    def __init__(self, commands: int, reports: int) -> None:
        self._commands = commands
        self._reports = reports
        self._children: dict[int, int] = {}  # process ids by number
        self._alarm, self._alarmed = os.pipe()

    def serve(self) -> None:
        os.set_blocking(self._alarmed, False)
        signal.set_wakeup_fd(self._alarmed)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        rest = b""
        poll = select.poll()
        poll.register(self._commands, select.POLLIN)
        poll.register(self._alarm, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._alarm in ready:
                os.read(self._alarm, _CHUNK)
            self._report_ended()
            if self._commands in ready:
                data = os.read(self._commands, _CHUNK)
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))
        for number in self._children:
            self._kill(number)

    def _obey(self, command: dict[str, Any]) -> None:
        if "run" in command:
            self._children[command["run"]] = self._fork(Path(command["job"]), Path(command["result"]))
        elif command["stop"] in self._children:
            self._kill(command["stop"])

    def _fork(self, job_path: Path, result_path: Path) -> int:
        job = read_job(job_path)
        # A library that is missing ends the child, which imports again.
        with suppress(ImportError):
            importlib.import_module(f"app.parsing.parsers.{job.format_name}_file")
        process_id = os.fork()
        if process_id:
            return process_id
        status = 1
        try:
            self._forget_host(job_path.parent)
            status = parse_job(job, result_path)
        finally:
            # Skips the interpreter's clean-up, which takes long for large documents and may crash in a C library.
            os._exit(status)

    def _forget_host(self, scratch: Path) -> None:
        """In the child: a group of its own, none of the host's pipes, and a folder for what it leaves behind."""
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.chdir(scratch)
        os.environ["TMPDIR"] = str(scratch)
        tempfile.tempdir = None

    def _report_ended(self) -> None:
        for number, process_id in list(self._children.items()):
            # Left in place until its group is gone too, so that the group's id is not given to anybody else.
            if os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            self._kill(number)
            _, status = os.waitpid(process_id, 0)
            del self._children[number]
            line = json.dumps({"ended": number, "status": os.waitstatus_to_exitcode(status)})
            os.write(self._reports, line.encode() + b"\n")

    def _kill(self, number: int) -> None:
        process_id = self._children[number]
        for kill in (os.killpg, os.kill):
            # Right after the fork it has no group of its own yet.
            with suppress(ProcessLookupError):
                kill(process_id, signal.SIGKILL)


def main() -> None:
    # openpyxl imports numpy where it finds it, only to know its number types: 100 ms and 60 MB for nothing.
    sys.modules["numpy"] = None  # type: ignore[assignment]  # makes the import fail as if it were absent
    Host(sys.stdin.fileno(), sys.stdout.fileno()).serve()


if __name__ == "__main__":
    main()
