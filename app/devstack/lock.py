"""One stack per data folder: a second start is refused, and one that was killed leaves no lock behind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from app.devstack.folders import FolderRefused


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the data folder for this process. The kernel lets go of it however the process ends.

    Raises FolderRefused, naming the process, if another one holds it.
    """
    holder = folder / "holder"
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        known = f" (process {holder.read_text()})" if holder.exists() else ""
        raise FolderRefused(
            f"{folder} is in use by another running stack{known}: stop that one first, or choose another --data-dir"
        ) from None
    try:
        holder.write_text(str(os.getpid()))
        yield
    finally:
        lock.release()
