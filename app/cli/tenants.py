"""`trellis tenant …`: the customers of an installation."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from app.cli.operator import as_operator

tenant_commands = typer.Typer(no_args_is_help=True, help="Create and list tenants.")


@tenant_commands.command("create")
def create(name: Annotated[str, typer.Argument(help="A name that no other tenant has.")]) -> None:
    """Create a tenant and print its id."""
    tenant = as_operator(lambda tenants: tenants.create_tenant(name))
    typer.echo(str(tenant.id))


@tenant_commands.command("list")
def list_tenants() -> None:
    """Show the tenants in order of creation."""
    # Kept whole on the narrowest terminal: an id that is cut off cannot be copied.
    table = Table(Column("id", no_wrap=True), "name", "status", Column("created", no_wrap=True), box=None)
    for tenant in as_operator(lambda tenants: tenants.list_tenants()):
        table.add_row(str(tenant.id), tenant.name, tenant.status, f"{tenant.created_at:%Y-%m-%d %H:%M}")
    Console().print(table)
