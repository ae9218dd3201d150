"""Runs the migrations from within a process; what they do stands in `migrations/`."""

import asyncio
import time
from pathlib import Path

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy.exc import DBAPIError

from app.db.migrating import AnotherMigrationRuns
from app.errors import Conflict

ROOT = Path(__file__).resolve().parents[2]
LOCK_NOT_AVAILABLE = "55P03"
# Between attempts whoever waited behind the migration gets on.
PAUSE_SECONDS = 2.0
PATIENCE_SECONDS = 60.0

HOLDERS = """
SELECT lock.pid, string_agg(DISTINCT lock.relation::regclass::text, ', ') AS tables
  FROM pg_locks lock JOIN pg_class class ON class.oid = lock.relation
 WHERE lock.granted AND lock.pid <> pg_backend_pid() AND class.relkind IN ('r', 'p')
   AND class.relnamespace = 'public'::regnamespace
   AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
 GROUP BY lock.pid ORDER BY lock.pid LIMIT 10
"""


class SchemaLocked(Conflict):
    """A migration did not get a lock in time; it left nothing behind."""

    code = "schema_locked"


def alembic_config(owner_url: str) -> Config:
    """Alembic's configuration for the database of `owner_url`, wherever the process was started."""
    config = Config(ROOT / "alembic.ini")
    config.set_main_option("script_location", str(ROOT / "migrations"))
    config.attributes["url"] = owner_url
    return config


def upgrade_schema(owner_url: str, revision: str = "head", *, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Bring the schema to `revision`; migrations of other processes on the same database wait for each other.

    A migration that does not get a lock is tried again for `patience_seconds`, then SchemaLocked names who holds locks.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            command.upgrade(alembic_config(owner_url), revision)
        except (DBAPIError, AnotherMigrationRuns) as error:
            if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
                raise
            if time.monotonic() + PAUSE_SECONDS > deadline:
                raise SchemaLocked(_locked(asyncio.run(_holders(owner_url)))) from error
            time.sleep(PAUSE_SECONDS)
        else:
            return


def _locked(holders: list[str]) -> str:
    who = "; ".join(holders) or "none any more"
    return (
        "a migration did not get its lock, for other sessions or another migration hold it. It left nothing; run "
        f"`trellis migrate` again when they are done. Sessions with locks on tables: {who}"
    )


async def _holders(owner_url: str) -> list[str]:
    connection = await asyncpg.connect(owner_url)
    try:
        return [f"process {row['pid']} ({row['tables']})" for row in await connection.fetch(HOLDERS)]
    finally:
        await connection.close()
