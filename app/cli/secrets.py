"""`trellis secret …`: the secret that what is kept at rest is encrypted with."""

import typer

from app.cli.operator import with_owner_database
from app.domain.secret_rotation import renew_secrets
from app.settings import Settings

secret_commands = typer.Typer(no_args_is_help=True, help="Move to another TRELLIS_SECRET_KEY.")


@secret_commands.callback()
def _group() -> None:
    """Keeps `rotate` a command of its own."""


@secret_commands.command("rotate")
def rotate() -> None:
    """Encrypt all that is kept under the first secret of TRELLIS_SECRET_KEY, which names the old ones after it."""
    renewed = with_owner_database(lambda database: renew_secrets(database, Settings().secret_key))
    typer.echo(
        f"{renewed.model_keys} keys of models and {renewed.webhook_secrets} secrets of webhooks are under the first secret."
    )
