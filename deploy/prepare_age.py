"""Prepares what the tests and benches of the AGE graph store need: the extra `age`, and a Postgres 17 with AGE and pgvector.

Where the machine has that server installed it is used as it is. Elsewhere Debian 13's packages are unpacked into a folder
of ours, once: apt resolves, fetches and verifies them with the machine's own configuration (mirror, proxy, keys), and
the programs run through the loader and libraries that came with them, as any user, without chroot and root.
"""

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from app.devstack.folders import stack_home

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements-age.lock"
SUITE = "trixie"
MAJOR = "17"
PACKAGES = (f"postgresql-{MAJOR}-age", f"postgresql-{MAJOR}-pgvector")
PROGRAMS = Path(f"usr/lib/postgresql/{MAJOR}/bin")
EXTENSIONS = Path(f"usr/share/postgresql/{MAJOR}/extension")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TIME_ZONES = Path("/usr/share/zoneinfo/UTC")
# What builds psycopg2, which has no Linux wheel.
BUILD_PACKAGES = ("gcc", "libc6-dev", "libpq-dev")
LEFT_OUT = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/info", "./usr/share/perl*")
WRAPPED = ("postgres", "initdb")
NOT_PREPARED = 3


class NotPrepared(RuntimeError):
    """This machine cannot run the AGE tests; the message says what is missing."""


def say(message: str) -> None:
    print(f"[age] {message}", flush=True)


def server_programs() -> Path:
    """The folder of Postgres's programs, as far as they were prepared. Raises `NotPrepared`."""
    for root in (Path("/"), _unpacked()):
        if _is_complete(root):
            return root / PROGRAMS
    raise NotPrepared("there is no Postgres with AGE here yet; `make test-age` prepares one")


def has_client() -> bool:
    """Whether the extra `age` is installed."""
    return find_spec("age") is not None and find_spec("psycopg2") is not None


def prepare_server() -> Path:
    """The folder of Postgres's programs; unpacked first where there is none. Raises `NotPrepared`."""
    with _one_at_a_time():
        try:
            return server_programs()
        except NotPrepared:
            _unpack(_unpacked())
    return server_programs()


def prepare_client() -> None:
    """Install the extra `age` into this environment, from its lock. Raises `NotPrepared`."""
    if has_client():
        return
    say("installing the extra `age`; psycopg2 is built from its source")
    command = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--quiet"]
    command += ["--require-hashes", "-r", str(LOCK)]
    if _run(command).returncode == 0:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NotPrepared("psycopg2 could not be built: it needs gcc, the headers of Python and pg_config (libpq-dev)")
    packages = [*BUILD_PACKAGES] if Path("/usr/local/include/python3.11").exists() else [*BUILD_PACKAGES, "python3-dev"]
    _demand(["apt-get", "update", "-qq"], "apt-get update")
    _demand(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], "installing gcc and libpq-dev")
    _demand(command, "building psycopg2")


def _unpacked() -> Path:
    return stack_home() / f"postgresql-{MAJOR}-age-{platform.machine()}"


def _is_complete(root: Path) -> bool:
    wanted = [PROGRAMS / "postgres", PROGRAMS / "initdb", EXTENSIONS / "age.control", EXTENSIONS / "vector.control"]
    return all((root / path).exists() for path in wanted)


def _unpack(target: Path) -> None:
    """Fetch and unpack into `target`, which appears whole or not at all."""
    for program in ("apt-get", "dpkg-deb", "tar"):
        if shutil.which(program) is None:
            raise NotPrepared(f"{program} is not installed: Debian's packages cannot be unpacked here")
    if not KEYRING.exists():
        raise NotPrepared("the keys of Debian's archive are not installed (package debian-archive-keyring)")
    if not TIME_ZONES.exists():
        raise NotPrepared("the time zones are not installed (package tzdata)")
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    fetched = draft.with_name(f"{draft.name}.fetched")
    try:
        started = time.monotonic()
        packages = _fetch(mirror(), fetched)
        say(f"unpacking {len(packages)} packages")
        draft.mkdir(mode=0o755)
        for package in packages:
            _unpack_one(package, draft)
        _wrap_programs(draft, target)
        shutil.rmtree(target, ignore_errors=True)
        draft.rename(target)
        say(f"Postgres {MAJOR} with AGE and pgvector is ready after {time.monotonic() - started:.0f} s")
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(fetched, ignore_errors=True)


def mirror() -> str:
    """The address that this machine fetches Debian's packages from, as apt itself reads its configuration."""
    form = "$(LABEL)|$(COMPONENT)|$(REPO_URI)"
    for _ in range(2):
        answer = _run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"])
        for line in answer.stdout.splitlines():
            label, component, address = (*line.split("|", 2), "", "")[:3]
            if component == "main" and (label == "Debian" or address.rstrip("/").endswith("/debian")):
                return address
        if os.geteuid() == 0:
            _run(["apt-get", "update", "-qq"])
    raise NotPrepared("apt is not configured for a mirror of Debian")


def _fetch(address: str, folder: Path) -> list[Path]:
    """The packages and all that they depend on, verified by apt, in `folder`."""
    say(f"fetching {' and '.join(PACKAGES)} of Debian {SUITE} with all they need (about 100 MB)")
    for path in ("state/lists/partial", "cache/archives/partial", "etc"):
        (folder / path).mkdir(parents=True)
    sources, status = folder / "etc/sources.list", folder / "status"
    sources.write_text(f"deb [signed-by={KEYRING}] {address} {SUITE} main\n")
    # Nothing is installed in the folder yet, so everything down to the C library is fetched.
    status.touch()
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": folder / "state",
        "Dir::State::status": status,
        "Dir::Cache": folder / "cache",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
    }
    apt = ["apt-get", "-qq", *(part for name, value in options.items() for part in ("-o", f"{name}={value}"))]
    _demand([*apt, "update"], f"reading the index of Debian {SUITE}")
    _demand([*apt, "install", "--yes", "--download-only", *PACKAGES], "fetching the packages")
    return sorted((folder / "cache/archives").glob("*.deb"))


def _unpack_one(package: Path, root: Path) -> None:
    excluded = [f"--exclude={path}" for path in LEFT_OUT]
    content = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE)
    unpacking = ["tar", "--extract", "--no-same-owner", f"--directory={root}", *excluded]
    answer = subprocess.run(unpacking, stdin=content.stdout, capture_output=True, text=True)
    if content.stdout is not None:
        content.stdout.close()
    if content.wait() != 0 or answer.returncode != 0:
        raise NotPrepared(f"{package.name} could not be unpacked: {answer.stderr[-500:]}")


def _wrap_programs(root: Path, home: Path) -> None:
    """Put scripts in the place of the programs that run them with their own loader and libraries, as `home` will hold them.

    Postgres finds its other files from the path it was called by.
    """
    loader = next((path for path in root.glob("usr/lib*/ld-linux-*.so.*")), None)
    if loader is None:
        raise NotPrepared(f"the packages for {platform.machine()} hold no loader where it was looked for")
    libraries = ":".join(str(home / path.relative_to(root)) for path in sorted(root.glob("usr/lib/*-linux-gnu*")))
    for name in WRAPPED:
        program = root / PROGRAMS / name
        real = program.with_name(f"{name}.real")
        program.rename(real)
        moved = home / real.relative_to(root)
        program.write_text(
            f"#!/bin/sh\nexec '{home / loader.relative_to(root)}' --argv0 \"$0\" --library-path '{libraries}' '{moved}' \"$@\"\n"
        )
        program.chmod(0o755)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    with (stack_home() / f"postgresql-{MAJOR}-age.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def _demand(command: list[str], what: str) -> None:
    answer = _run(command)
    if answer.returncode != 0:
        raise NotPrepared(f"{what} failed: {(answer.stderr or answer.stdout)[-800:].strip()}")


def main() -> None:
    try:
        programs = prepare_server()
        prepare_client()
    except NotPrepared as reason:
        say(f"not prepared: {reason}")
        sys.exit(NOT_PREPARED)
    say(f"prepared: {programs}")


if __name__ == "__main__":
    main()
