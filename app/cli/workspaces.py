"""`trellis workspace …`: what operators do to workspaces."""

import asyncio
from enum import StrEnum
from typing import Annotated
from uuid import UUID

import typer

from app.bootstrap import open_container
from app.cli.operator import as_operator
from app.domain.ingestion.moving import DRAIN_SECONDS, Moved
from app.logs import configure_logging
from app.settings import Settings

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
    ] = DRAIN_SECONDS,
) -> None:
    """Move a workspace's graph while it is asked and written; broken off, it goes on when it is called again."""
    tenant_id = as_operator(lambda tenants: tenants.get_tenant(tenant)).id
    moved = asyncio.run(_migrate(tenant_id, workspace, to, drain_seconds))
    typer.echo(
        f"The graph is in {to.value}; {moved.rows} rows were compared."
        if moved.rows
        else f"The graph is in {to.value}."
    )


async def _migrate(tenant_id: UUID, workspace_id: UUID, to: Store, drain_seconds: float) -> Moved:
    settings = Settings()
    configure_logging(settings)
    async with open_container(settings) as container:
        return await container.graph_move().run(
            tenant_id, workspace_id, to.value, lambda line: typer.echo(line, err=True), drain_seconds=drain_seconds
        )
