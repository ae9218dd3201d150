"""Child processes of the stack: started in sessions of their own, logged to files, found again after a crash.

Every child carries an environment variable with the data folder, which its own children inherit. So whatever a killed
supervisor left behind can be told from everything else on the machine, however process ids were reused.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from app.devstack.folders import Account

MARK = "TRELLIS_STACK_FOLDER"
SERVER_FOLDERS = {"postgres": "postgres", "redis-server": "redis"}
POLL_SECONDS = 0.05
MAX_LOG_BYTES = 10 * 2**20


class ProcessFailed(RuntimeError):
    """A child did not start or ended by itself; the message has the last lines of its log."""


@dataclass
class Child:
    """A running child process and how to end it politely."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 30
    _asked: bool = field(default=False, init=False)

    def ended(self) -> bool:
        return self.process.poll() is not None

    def failure(self) -> ProcessFailed:
        return ProcessFailed(
            f"{self.name} ended with exit code {self.process.poll()}; the end of {self.log}:\n{log_tail(self.log)}"
        )

    def ask_to_stop(self) -> None:
        if not self.ended() and not self._asked:
            self._asked = True
            self.process.send_signal(self.stop_signal)

    def stop(self) -> None:
        """Ask it to end, wait, and kill it with all that it started if it does not."""
        if not self.ended():
            self.ask_to_stop()
            try:
                self.process.wait(self.stop_seconds)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def start_child(
    name: str,
    command: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str],
    folder: Path,
    account: Account | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Child:
    """Start `command` in `folder` with exactly this environment.

    It gets a session of its own, so that Ctrl-C in a terminal reaches only the supervisor, which stops in order.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
        log.replace(log.with_suffix(".old.log"))
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
            user=account.user_id if account else None,
            group=account.group_id if account else None,
            extra_groups=[] if account else None,
        )
    return Child(name, process, log, stop_signal)


def stop_leftovers(folder: Path, *, patience_seconds: float = 10) -> int:
    """End every process of an earlier run on this data folder; the count of those found."""
    found = [process for process in psutil.process_iter() if _belongs_to(process, folder)]
    for process in found:
        # SIGTERM makes Postgres wait for its clients; SIGINT makes it end now and cleanly.
        _signal(process, signal.SIGINT if _name(process) == "postgres" else signal.SIGTERM)
    _, alive = psutil.wait_procs(found, timeout=patience_seconds)
    for process in alive:
        _signal(process, signal.SIGKILL)
    psutil.wait_procs(alive, timeout=patience_seconds)
    return len(found)


def is_running_in(process_id: int, folder: Path) -> bool:
    """Whether a live process (not one that ended and was never waited for) works in `folder`."""
    try:
        process = psutil.Process(process_id)
        return bool(process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == folder)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def log_tail(log: Path, lines: int = 25) -> str:
    if not log.exists():
        return "(no log)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def _belongs_to(process: psutil.Process, folder: Path) -> bool:
    if process.pid == os.getpid():
        return False
    try:
        # The servers write their status over their environment, but always work inside their own folder.
        if process.name() in SERVER_FOLDERS:
            return Path(process.cwd()) == folder / SERVER_FOLDERS[process.name()]
        return bool(process.environ().get(MARK) == str(folder))
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
