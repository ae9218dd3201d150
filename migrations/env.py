"""Runs migrations as the owner role, one at a time over all processes, with lock and statement timeouts."""

import asyncio

from alembic import context
from sqlalchemy import Connection, pool, text
from sqlalchemy.ext.asyncio import create_async_engine

import app.db.models  # noqa: F401 - fills the metadata
from app.db.base import Base
from app.settings import Settings

MIGRATION_LOCK = 0x7452656C  # one lock for every deployment on this database, so that two never migrate at once


def owner_url() -> str:
    """The URL given by the caller (tests, CLI) or by the environment."""
    given: str | None = context.config.attributes.get("url")
    if given is None:
        secret = Settings().owner_database_url
        if secret is None:
            raise SystemExit("set TRELLIS_OWNER_DATABASE_URL: migrations run as the owner role")
        given = secret.get_secret_value()
    return given.replace("postgresql://", "postgresql+asyncpg://", 1)


def is_ours(name: str | None, kind: str, parents: object) -> bool:  # noqa: ARG001
    """Autogenerate and `alembic check` leave the engine's tables and the per-profile vector tables alone."""
    return kind != "table" or name in Base.metadata.tables


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=Base.metadata, include_name=is_ours)
    with context.begin_transaction():
        connection.execute(text("SET LOCAL lock_timeout = '5s'"))
        connection.execute(text("SET LOCAL statement_timeout = '10min'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        context.run_migrations()


async def main() -> None:
    engine = create_async_engine(owner_url(), poolclass=pool.NullPool)
    async with engine.begin() as connection:
        await connection.run_sync(run)
    await engine.dispose()


if context.is_offline_mode():
    raise SystemExit("offline migrations are not supported: the schema is built on a live database")
asyncio.run(main())
