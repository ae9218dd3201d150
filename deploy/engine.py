"""Podman as the build and the run of the images use it: installed where it is missing, and told what this machine allows."""

import json
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

NOT_PREPARED = 3
# runc runs under every layout of control groups, which crun of Debian 12 does not.
PACKAGES = ("podman", "runc", "netavark", "aardvark-dns", "iptables", "debootstrap", "debian-archive-keyring")
CONFIGURATION = '[engine]\nruntime = "runc"\nevents_logger = "none"\ncgroup_manager = "cgroupfs"\n'

# Open files and processes of a container at most; the file's own limits on processes are lower.
MOST = 4096


class NotPrepared(RuntimeError):
    """Images cannot be built or run on this machine; the message says what is missing."""


def say(message: str) -> None:
    print(f"[images] {message}", flush=True)


class Engine:
    """Calls of podman. Raises `NotPrepared` when it can neither be found nor installed."""

    def __init__(self) -> None:
        if shutil.which("podman") is None or shutil.which("runc") is None or shutil.which("debootstrap") is None:
            install()
        self._folder = Path(tempfile.mkdtemp(prefix="trellis-engine-"))
        configuration = self._folder / "containers.conf"
        configuration.write_text(CONFIGURATION)
        self._environment = os.environ | {"CONTAINERS_CONF": str(configuration)}

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run podman and keep what it prints. With `check` a failure raises RuntimeError with its last lines."""
        answer = subprocess.run(["podman", *arguments], capture_output=True, text=True, env=self._environment)
        if check and answer.returncode != 0:
            raise RuntimeError(f"podman {' '.join(arguments[:2])} failed: {answer.stderr[-1500:].strip()}")
        return answer

    def pass_through(self, *arguments: str, source: Path | None = None, target: Path | None = None) -> None:
        """Run podman with its input from a file and its output into one. Raises RuntimeError with its last lines."""
        with (source or Path(os.devnull)).open("rb") as given, (target or Path(os.devnull)).open("wb") as taken:
            answer = subprocess.run(
                ["podman", *arguments], stdin=given, stdout=taken, stderr=subprocess.PIPE, env=self._environment
            )
        if answer.returncode != 0:
            raise RuntimeError(f"podman {arguments[0]} failed: {answer.stderr.decode()[-1500:].strip()}")

    def show(self, *arguments: str) -> None:
        """Run podman, its output shown as it comes."""
        code = subprocess.run(["podman", *arguments], env=self._environment).returncode
        if code != 0:
            raise RuntimeError(f"podman {' '.join(arguments[:2])} ended with exit code {code}")

    def has_image(self, name: str) -> bool:
        return self.call("image", "exists", name, check=False).returncode == 0

    def inspect(self, kind: str, name: str) -> dict[str, object]:
        found: list[dict[str, object]] = json.loads(self.call("inspect", "--type", kind, name).stdout)
        return found[0]


def limits() -> list[str]:
    """Options that keep containers below the limits of this process, which podman would otherwise try to raise."""
    options = []
    for name, number in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        hard = resource.getrlimit(number)[1]
        most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
        options += ["--ulimit", f"{name}={most}:{most}"]
    return options


def install() -> None:
    """Debian's packages of podman and what it needs, as root."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NotPrepared(f"these packages are missing and only root can install them: {' '.join(PACKAGES)}")
    say(f"installing {', '.join(PACKAGES)}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES],
    ):
        answer = subprocess.run(command, capture_output=True, text=True, env=environment)
        if answer.returncode != 0:
            raise NotPrepared(f"{' '.join(command[:2])} failed: {(answer.stderr or answer.stdout)[-800:].strip()}")


def demand(command: Sequence[str], what: str) -> None:
    answer = subprocess.run(list(command), capture_output=True, text=True)
    if answer.returncode != 0:
        raise NotPrepared(f"{what} failed: {(answer.stderr or answer.stdout)[-800:].strip()}")
