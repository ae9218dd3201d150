"""How migrations take turns, how long they wait, and how they build an index while its table is in use."""

import time
from typing import Final

from alembic.operations import Operations
from sqlalchemy import Connection, text

MIGRATION_LOCK: Final = 0x7452656C  # one lock for every deployment on this database, so that two never migrate at once
LOCK_SECONDS: Final = 3
STATEMENT_MINUTES: Final = 10
LIMITS: Final = (f"SET lock_timeout = '{LOCK_SECONDS}s'", f"SET statement_timeout = '{STATEMENT_MINUTES}min'")
NO_LIMITS: Final = ("SET lock_timeout = 0", "SET statement_timeout = 0")
_PAUSE_SECONDS: Final = 0.2


class AnotherMigrationRuns(Exception):
    """Another session migrates this database and did not end in time."""


def take_turn(connection: Connection) -> None:
    """Set the limits of every migration and take the lock of migrations; both go with the connection.

    The lock is asked for again and again instead of waited for: whoever waits inside a statement keeps an old snapshot
    open, and an index that the other session builds concurrently would wait for that, each of them for the other.
    Raises AnotherMigrationRuns after LOCK_SECONDS.
    """
    with connection.begin():
        for limit in LIMITS:
            connection.execute(text(limit))
    deadline = time.monotonic() + LOCK_SECONDS
    while not _is_our_turn(connection):
        if time.monotonic() > deadline:
            raise AnotherMigrationRuns
        time.sleep(_PAUSE_SECONDS)


def _is_our_turn(connection: Connection) -> bool:
    with connection.begin():
        return bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": MIGRATION_LOCK}).scalar_one())


def build_index(op: Operations, name: str, on: str, *, unique: bool = False) -> None:
    """Build the index `name` while others read and write its table: `on` is what follows ON, the table first.

    Takes as long as it takes: it waits for every transaction that is older, which no limit of a migration fits, and it
    keeps nobody waiting. What an earlier attempt left (an invalid index) is dropped first. The table must not be
    partitioned: build it on one partition after the other. Call it in a migration that does nothing else, for what came
    before it is committed.
    """
    kind = "UNIQUE INDEX" if unique else "INDEX"
    with op.get_context().autocommit_block():
        for statement in (
            *NO_LIMITS,
            f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"',
            f'CREATE {kind} CONCURRENTLY "{name}" ON {on}',
            *LIMITS,
        ):
            op.execute(statement)
