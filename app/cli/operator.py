"""Runs what only an operator may do: with the schema owner's connection, which no serving process has."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click
import typer

from app.db.acting import Acting, note_caller
from app.db.session import Database
from app.domain.tenants.service import TenantService
from app.settings import Settings

Result = TypeVar("Result")


def as_operator(work: Callable[[TenantService], Awaitable[Result]]) -> Result:
    """`with_owner_database` for what is done to tenants and keys."""
    return with_owner_database(lambda database: work(TenantService(database)))


def with_owner_database(work: Callable[[Database], Awaitable[Result]]) -> Result:
    """Run `work` on a connection of its own; raises BadParameter if the environment names no owner."""
    settings = Settings()
    if settings.owner_database_url is None:
        raise typer.BadParameter("set TRELLIS_OWNER_DATABASE_URL: this is done as the owner role")
    url = settings.owner_database_url.get_secret_value()

    async def run() -> Result:
        context = click.get_current_context(silent=True)
        note_caller(Acting("operator", context.command_path if context is not None else "trellis"))
        database = Database(url, pool_size=1)
        try:
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(run())
