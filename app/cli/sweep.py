"""`trellis sweep`: what the sweepers of the workers do by themselves, once and now, or only counted."""

import asyncio
from typing import Annotated

import typer
from redis.exceptions import RedisError
from rich.console import Console
from rich.table import Column, Table

from app.domain.ingestion.sweeper import SweepReport
from app.errors import Unavailable
from app.logs import configure_logging
from app.settings import Settings


class BrokerUnavailable(Unavailable):
    """Redis did not say how many messages wait."""

    code = "broker_unavailable"
    title = "The broker does not answer"


def sweep(
    is_dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count, change nothing.")] = False,
    only_stale: Annotated[
        bool, typer.Option("--only-stale", help="Leave out the search for rows and files that nobody owns.")
    ] = False,
) -> None:
    """Send work again that stood still, and remove what nobody owns; show how much there was of each kind."""
    table = Table("kind", Column("found", justify="right"), Column("handled", justify="right"), box=None)
    try:
        reports = asyncio.run(_sweep(is_dry_run, only_stale))
    except RedisError as error:
        raise BrokerUnavailable("the broker does not answer, so nothing can be sent again") from error
    for report in reports:
        for kind, found in report.found.items():
            table.add_row(kind, str(found), str(report.handled[kind]))
    Console().print(table)


async def _sweep(is_dry_run: bool, only_stale: bool) -> list[SweepReport]:
    from app.bootstrap import open_worker  # noqa: PLC0415 - the engines take seconds to import, and no other command needs them

    settings = Settings()
    configure_logging(settings)  # to stderr: what is printed is the table alone
    async with open_worker(settings) as worker:
        reports = [await worker.sweeper.sweep(is_dry_run=is_dry_run)]
        if not only_stale:
            reports.append(await worker.leftovers.sweep(is_dry_run=is_dry_run))
    return reports
