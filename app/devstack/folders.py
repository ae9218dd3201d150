"""Folders of the embedded servers, and the account that Postgres runs as when we are root.

Postgres refuses to run as root, so as root it runs as an unprivileged account that must reach its binaries and data.
No permission of a folder that we did not create is ever changed: an unreachable one is an error that names it.
"""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

SHARED_TEMPORARY = Path("/var/tmp")  # noqa: S108 - survives a reboot, in no home, reachable by every account
ACCOUNTS = ("nobody", "postgres", "daemon")


class FolderRefused(RuntimeError):
    """A folder cannot hold the embedded servers; the message names it and says what to do."""


@dataclass(frozen=True)
class Account:
    """An unprivileged system account, by numbers."""

    name: str
    user_id: int
    group_id: int


def server_account() -> Account | None:
    """The account that Postgres has to run as: none of its own unless this process is root."""
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise FolderRefused(f"Postgres must not run as root and none of the accounts {', '.join(ACCOUNTS)} exists here")


def stack_home(parent: Path = SHARED_TEMPORARY) -> Path:
    """Our own folder below `parent`, created on first use.

    Anyone may create names in /var/tmp, so one that belongs to somebody else is refused.
    """
    home = parent / f"trellis-{os.geteuid()}"
    if not os.path.lexists(home):
        create_folder(home)
    found = home.lstat()
    if not S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise FolderRefused(
            f"{home} belongs to another user or is no folder; remove it or name another with --data-dir"
        )
    return home


def create_folder(folder: Path) -> None:
    """Create `folder` and its missing parents: passable where another account must go through, else private."""
    if folder.exists():
        return
    create_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    folder.chmod(0o711 if os.geteuid() == 0 else 0o700)


def give_folder(folder: Path, account: Account | None) -> None:
    """Create a private folder that belongs to `account`."""
    if folder.exists():
        return
    create_folder(folder.parent)
    folder.mkdir(mode=0o700)
    if account is not None:
        os.chown(folder, account.user_id, account.group_id)


def require_reachable(folder: Path, account: Account | None) -> None:
    """Raise `FolderRefused` if `account` cannot enter `folder`."""
    if account is None:
        return
    answer = subprocess.run(
        ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)],
        cwd="/",
        env={},
        capture_output=True,
        user=account.user_id,
        group=account.group_id,
        extra_groups=[],
    )
    if answer.returncode != 0:
        raise FolderRefused(
            f"{folder} cannot be reached by the account {account.name!r} that Postgres runs as, and Trellis changes no "
            "permission of a folder that it did not create: choose a folder outside any home, such as one in /var/tmp"
        )
