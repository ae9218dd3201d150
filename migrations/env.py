"""Runs migrations as the owner role, one at a time over all processes, each in a transaction of its own.

A migration that waits for a lock keeps everybody who comes after it waiting too, so it gives up soon and leaves nothing;
`app.db.schema` tries again. Those before it stay: every migration leaves a schema that the code before it can work with.
"""

import asyncio

from alembic import context
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine

import app.db.models  # noqa: F401 - fills the metadata
from app.db.base import Base
from app.db.migrating import take_turn
from app.settings import Settings


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
    take_turn(connection)
    context.configure(
        connection=connection, target_metadata=Base.metadata, include_name=is_ours, transaction_per_migration=True
    )
    with context.begin_transaction():
        context.run_migrations()


async def main() -> None:
    engine = create_async_engine(owner_url(), poolclass=pool.NullPool)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(run)
    finally:
        await engine.dispose()


if context.is_offline_mode():
    raise SystemExit("offline migrations are not supported: the schema is built on a live database")
asyncio.run(main())
