"""`trellis webhook …`: lets what webhooks missed be sent again."""

from typing import Annotated
from uuid import UUID

import typer

from app.cli.operator import with_owner_database
from app.db.session import Database
from app.domain.events.errors import WebhookNotFound
from app.domain.events.webhook_repository import WebhookRepository
from app.domain.events.webhooks import replay
from app.domain.tenants.service import TenantService

webhook_commands = typer.Typer(no_args_is_help=True, help="Send events to webhooks again.")


@webhook_commands.callback()
def _group() -> None:
    """Keeps `replay` a command of its own."""


@webhook_commands.command("replay")
def replay_webhook(
    tenant: Annotated[str, typer.Argument(help="Name or id of the tenant.")],
    webhook: Annotated[UUID, typer.Argument(help="Id of the webhook.")],
    after: Annotated[
        int | None, typer.Option(min=0, help="All kept events above this id; left out, only what was given up.")
    ] = None,
) -> None:
    """Queue deliveries anew and print how many; workers send them."""

    async def queue(database: Database) -> int:
        owner = await TenantService(database).get_tenant(tenant)
        async with database.tenant(owner.id) as session:
            found = await WebhookRepository(session).find(webhook)
            if found is None:
                raise WebhookNotFound(f"This tenant has no webhook {webhook}.", webhook_id=webhook)
            return await replay(session, found, after)

    typer.echo(with_owner_database(queue))
