"""`trellis tenant …`: the customers of an installation."""

import time
from typing import Annotated
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Column, Table

from app.cli.operator import as_operator
from app.db.models import Tenant
from app.domain.tenants.deletion_repository import Deletion
from app.domain.tenants.errors import TenantNotFound
from app.domain.tenants.service import TenantService, is_uuid

tenant_commands = typer.Typer(no_args_is_help=True, help="Create, list, suspend and delete tenants.")
TenantArgument = Annotated[str, typer.Argument(help="Name or id of the tenant.")]
POLL_SECONDS = 1.0


@tenant_commands.command("create")
def create(name: Annotated[str, typer.Argument(help="A name that no other tenant has.")]) -> None:
    """Create a tenant and print its id."""
    tenant = as_operator(lambda tenants: tenants.create_tenant(name))
    typer.echo(str(tenant.id))


@tenant_commands.command("list")
def list_tenants() -> None:
    """Show the tenants in order of creation."""
    # Kept whole on the narrowest terminal: an id that is cut off cannot be copied.
    table = Table(Column("id", no_wrap=True), "name", "status", "plan", Column("created", no_wrap=True), box=None)
    for tenant in as_operator(lambda tenants: tenants.list_tenants()):
        table.add_row(
            str(tenant.id), tenant.name, tenant.status, tenant.plan or "-", f"{tenant.created_at:%Y-%m-%d %H:%M}"
        )
    Console().print(table)


@tenant_commands.command("suspend")
def suspend(tenant: TenantArgument) -> None:
    """Have its keys refused and its queued work wait."""

    async def change(tenants: TenantService) -> Tenant:
        return await tenants.suspend((await tenants.get_tenant(tenant)).id)

    typer.echo(f"Tenant {as_operator(change).name} is suspended.")


@tenant_commands.command("resume")
def resume(tenant: TenantArgument) -> None:
    """Let a suspended tenant work again."""

    async def change(tenants: TenantService) -> Tenant:
        return await tenants.resume((await tenants.get_tenant(tenant)).id)

    typer.echo(f"Tenant {as_operator(change).name} is active.")


@tenant_commands.command("delete")
def delete(
    tenant: TenantArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Follow it until all is gone, and show the count.")] = False,
) -> None:
    """Remove a tenant with all it has; the workers do it. Asked again, it shows how far that is."""
    if not yes:
        typer.confirm(f"Delete {tenant}, its workspaces and its documents? This cannot be undone.", abort=True)
    deletion = as_operator(lambda tenants: _delete(tenants, tenant))
    tenant_id = deletion.tenant_id
    typer.echo(_progress(deletion))
    while wait and deletion.finished_at is None:
        time.sleep(POLL_SECONDS)
        deletion = as_operator(lambda tenants: tenants.deletion(tenant_id))
        typer.echo(_progress(deletion))
    if deletion.proof is not None:
        for place, count in deletion.proof.items():
            typer.echo(f"{count}  {place}")


async def _delete(tenants: TenantService, name_or_id: str) -> Deletion:
    try:
        found = (await tenants.get_tenant(name_or_id)).id
    except TenantNotFound:
        # Gone already: its id still leads to the proof.
        if not is_uuid(name_or_id):
            raise
        return await tenants.deletion(UUID(name_or_id))
    return await tenants.delete(found)


def _progress(deletion: Deletion) -> str:
    if deletion.finished_at is not None:
        return f"{deletion.tenant_id} is gone; rows and objects that are left, by place:"
    return f"{deletion.tenant_id}: {deletion.workspaces_left} workspaces and {deletion.documents_left} documents left"
