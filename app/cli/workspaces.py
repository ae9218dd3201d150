"""`trellis workspace …`: what operators do to workspaces."""

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Column, Table

from app.cli.operator import as_operator
from app.db.base import TenantId, WorkspaceId
from app.logs import configure_logging
from app.settings import Settings

if TYPE_CHECKING:
    from app.domain.ingestion.moving import Moved

workspace_commands = typer.Typer(no_args_is_help=True, help="Look after workspaces.")


class Store(StrEnum):
    TABLE = "table"
    AGE = "age"


@workspace_commands.callback()
def _group() -> None:
    """Look after workspaces."""


@workspace_commands.command("migrate-graph")
def migrate_graph(
    tenant: Annotated[str, typer.Argument(help="Name or id of the tenant.")],
    workspace: Annotated[UUID, typer.Argument(help="Id of the workspace.")],
    to: Annotated[Store, typer.Option(help="Where the graph goes.")],
    drain_seconds: Annotated[
        float, typer.Option(help="How long the old store is kept for queries that are under way.", min=0)
    ] = 30,
) -> None:
    """Move a workspace's graph while it is asked and written; broken off, it goes on when it is called again."""
    tenant_id = as_operator(lambda tenants: tenants.get_tenant(tenant)).id
    moved = asyncio.run(_migrate(tenant_id, workspace, to, drain_seconds))
    typer.echo(
        f"The graph is in {to.value}; {moved.rows} rows were compared."
        if moved.rows
        else f"The graph is in {to.value}."
    )


async def _migrate(tenant_id: UUID, workspace_id: UUID, to: Store, drain_seconds: float) -> "Moved":
    from app.bootstrap import open_container  # noqa: PLC0415 - the engines take seconds to import, and no other command needs them

    settings = Settings()
    configure_logging(settings)
    async with open_container(settings) as container:
        return await container.graph_move().run(
            tenant_id, workspace_id, to.value, lambda line: typer.echo(line, err=True), drain_seconds=drain_seconds
        )


@workspace_commands.command()
def check(
    tenant: Annotated[str, typer.Argument(help="Name or id of the tenant.")],
    workspace: Annotated[UUID, typer.Argument(help="Id of the workspace.")],
    is_mended: Annotated[bool, typer.Option("--mend", help="Derive again what does not agree.")] = False,
) -> None:
    """Compare graph, vectors, lists of chunks, mentions and our tables; exit 1 if something does not agree."""
    tenant_id = as_operator(lambda tenants: tenants.get_tenant(tenant)).id
    before, after = asyncio.run(_check(TenantId(tenant_id), WorkspaceId(workspace), is_mended))
    table = Table("kind", Column("found", justify="right"), Column("left", justify="right"), box=None)
    for kind, found in before.items():
        table.add_row(kind, str(found), str(after[kind]))
    Console().print(table)
    if any(after.values()):
        raise typer.Exit(1)


async def _check(
    tenant_id: TenantId, workspace_id: WorkspaceId, is_mended: bool
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    from app.bootstrap import open_container  # noqa: PLC0415 - the engines take seconds to import, and no other command needs them

    settings = Settings()
    configure_logging(settings)  # to stderr: what is printed is the table alone
    async with open_container(settings) as container:
        checking = container.graph_checking()
        before = await checking.check(tenant_id, workspace_id)
        after = await checking.mend(tenant_id, workspace_id) if is_mended and any(before.values()) else before
    return before, after


@workspace_commands.command()
def themes(
    tenant: Annotated[str, typer.Argument(help="Name or id of the tenant.")],
    workspace: Annotated[UUID, typer.Argument(help="Id of the workspace.")],
    is_asked: Annotated[bool, typer.Option("--refresh", help="Have a worker build them again.")] = False,
) -> None:
    """Show how a workspace's map of themes was built and how much has changed since; exit 1 if it has none."""
    tenant_id = as_operator(lambda tenants: tenants.get_tenant(tenant)).id
    figures = asyncio.run(_themes(TenantId(tenant_id), WorkspaceId(workspace), is_asked))
    if figures is None:
        typer.echo(
            "The workspace has no map of themes." + (" A worker was asked for one." if is_asked else ""), err=True
        )
        raise typer.Exit(0 if is_asked else 1)
    table = Table("figure", Column("value", justify="right"), box=None)
    for name, value in figures.items():
        table.add_row(name, str(value))
    Console().print(table)


async def _themes(tenant_id: TenantId, workspace_id: WorkspaceId, is_asked: bool) -> Mapping[str, object] | None:
    from app.bootstrap import open_container  # noqa: PLC0415 - the engines take seconds to import, and no other command needs them

    settings = Settings()
    configure_logging(settings)
    async with open_container(settings) as container:
        refreshing = container.theme_refreshing()
        if is_asked:
            await refreshing.ask(tenant_id, workspace_id)
        return await refreshing.figures(tenant_id, workspace_id)
