"""`trellis key …`: API keys of tenants. A key is printed once, when it is made."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Column, Table

from app.cli.operator import as_operator
from app.db.models import ApiKey
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService

key_commands = typer.Typer(no_args_is_help=True, help="Create, list, rotate and revoke API keys.")
TenantArgument = Annotated[str, typer.Argument(help="Name or id of the tenant.")]


@key_commands.command("create")
def create(
    tenant: TenantArgument,
    role: Annotated[Role, typer.Option(help="What the key may do.")] = Role.EDITOR,
    name: Annotated[str, typer.Option(help="What it is for.")] = "made on the command line",
    workspace: Annotated[UUID | None, typer.Option(help="Bind the key to this workspace.")] = None,
    days: Annotated[int | None, typer.Option(min=1, help="Days until it expires; never if left out.")] = None,
) -> None:
    """Create a key and print it, this once."""
    expires_at = datetime.now(UTC) + timedelta(days=days) if days is not None else None

    async def make(tenants: TenantService) -> str:
        found = await tenants.get_tenant(tenant)
        return await tenants.create_key(found.id, name=name, role=role, workspace_id=workspace, expires_at=expires_at)

    typer.echo(as_operator(make))


@key_commands.command("list")
def list_keys(tenant: TenantArgument) -> None:
    """Show a tenant's keys, without their secrets."""

    async def find(tenants: TenantService) -> Sequence[ApiKey]:
        return await tenants.list_keys((await tenants.get_tenant(tenant)).id)

    table = Table(
        Column("prefix", no_wrap=True),
        "name",
        "role",
        Column("workspace", no_wrap=True),
        "expires",
        "revoked",
        "last used",
        box=None,
    )
    for key in as_operator(find):
        table.add_row(
            key.prefix, key.name, key.role, str(key.workspace_id or "all"), _day(key.expires_at), _day(key.revoked_at),
            _day(key.last_used_at),
        )  # fmt: skip
    Console().print(table)


@key_commands.command("revoke")
def revoke(tenant: TenantArgument, prefix: Annotated[str, typer.Argument(help="Of the key, as listed.")]) -> None:
    """Make a key useless from now on."""

    async def end(tenants: TenantService) -> None:
        await tenants.revoke_key((await tenants.get_tenant(tenant)).id, prefix)

    as_operator(end)
    typer.echo(f"Key {prefix} is revoked.")


@key_commands.command("rotate")
def rotate(
    tenant: TenantArgument,
    prefix: Annotated[str, typer.Argument(help="Of the key, as listed.")],
    overlap_hours: Annotated[int, typer.Option(min=0, max=720, help="Hours that the old key goes on working.")] = 0,
) -> None:
    """Print a new key with the rights of an old one, which ends."""

    async def replace(tenants: TenantService) -> str:
        async with tenants.keys((await tenants.get_tenant(tenant)).id) as keys:
            old = await keys.find_by_prefix(prefix)
            _, text = await keys.rotate(old.id, overlap=timedelta(hours=overlap_hours))
        return text

    typer.echo(as_operator(replace))


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else "-"
