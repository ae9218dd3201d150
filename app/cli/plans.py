"""`trellis plan …`: limits by name, and which tenant has which."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.cli.operator import with_owner_database
from app.db.session import Database
from app.domain.limits.plans import PlanService
from app.domain.limits.repository import LIMITS
from app.domain.tenants.service import TenantService

plan_commands = typer.Typer(no_args_is_help=True, help="Set and assign plans.")
NameArgument = Annotated[str, typer.Argument(help="Name of the plan.")]
Limit = Annotated[int | None, typer.Option(min=0, help="No limit if left out.")]
Rate = Annotated[int | None, typer.Option(min=1, help="No limit if left out.")]


@plan_commands.command("set")
def set_plan(
    name: NameArgument,
    requests_per_minute: Rate = None,
    concurrent_ingestions: Rate = None,
    documents: Limit = None,
    stored_bytes: Limit = None,
    model_tokens_per_month: Limit = None,
) -> None:
    """Make or replace a plan."""
    given = (requests_per_minute, concurrent_ingestions, documents, stored_bytes, model_tokens_per_month)
    limits = dict(zip(LIMITS, given, strict=True))
    with_owner_database(lambda database: PlanService(database).put(name, limits))
    typer.echo(f"Plan {name} is set.")


@plan_commands.command("list")
def list_plans() -> None:
    """Show all plans."""
    table = Table("name", *LIMITS, box=None)
    for plan in with_owner_database(lambda database: PlanService(database).list()):
        limits = (getattr(plan, limit) for limit in LIMITS)
        table.add_row(plan.name, *("-" if limit is None else str(limit) for limit in limits))
    Console().print(table)


@plan_commands.command("assign")
def assign(
    tenant: Annotated[str, typer.Argument(help="Name or id of the tenant.")],
    name: Annotated[str | None, typer.Argument(help="Name of the plan; no limits if left out.")] = None,
) -> None:
    """Give a tenant a plan."""

    async def change(database: Database) -> None:
        await PlanService(database).assign((await TenantService(database).get_tenant(tenant)).id, name)

    with_owner_database(change)
    typer.echo(f"Tenant {tenant} has {'no plan' if name is None else f'the plan {name}'}.")
