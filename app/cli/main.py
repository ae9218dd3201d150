"""The `trellis` command: puts the subcommands together and turns expected failures into one line and an exit code."""

import socket
import sys
from importlib.util import find_spec
from typing import NoReturn

import asyncpg
import typer
from pydantic import ValidationError

from app.cli import keys, migrate, models, plans, secrets, sweep, tenants, webhooks, workspaces
from app.errors import AppError

# The development stack needs packages of the extra `dev`, which a production image does not have.
HAS_DEVSTACK = find_spec("psutil") is not None and find_spec("filelock") is not None

app = typer.Typer(
    name="trellis",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Trellis, a multi-tenant retrieval backend.",
)
app.command("migrate")(migrate.migrate)
app.command("sweep")(sweep.sweep)
app.add_typer(migrate.database_commands, name="db")
app.add_typer(models.model_commands, name="model")
app.add_typer(tenants.tenant_commands, name="tenant")
app.add_typer(keys.key_commands, name="key")
app.add_typer(webhooks.webhook_commands, name="webhook")
app.add_typer(plans.plan_commands, name="plan")
app.add_typer(secrets.secret_commands, name="secret")
app.add_typer(workspaces.workspace_commands, name="workspace")

# What connecting raises when the address, the password or the name of the database is wrong.
UNREACHABLE = (
    ConnectionError,
    socket.gaierror,
    asyncpg.PostgresConnectionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)
EXPECTED: tuple[type[Exception], ...] = (AppError,)
if HAS_DEVSTACK:
    from app.cli import demo, dev
    from app.cli.demo_client import DemoFailed
    from app.devstack.folders import FolderRefused
    from app.devstack.processes import ProcessFailed

    app.command("dev")(dev.dev)
    app.command("demo")(demo.demo)
    EXPECTED += (FolderRefused, ProcessFailed, DemoFailed)


def main() -> None:
    try:
        app()
    except EXPECTED as error:
        _fail(str(error))
    except UNREACHABLE as error:
        _fail(f"the database cannot be reached: {error}")
    except ValidationError as error:  # of the settings, which every command reads first
        _fail("\n".join(f"{_variable(item['loc'])}{item['msg']}" for item in error.errors(include_input=False)))


def _fail(message: str) -> NoReturn:
    typer.secho(f"trellis: {message}", fg="red", err=True)
    sys.exit(1)


def _variable(location: tuple[int | str, ...]) -> str:
    return f"TRELLIS_{str(location[0]).upper()}: " if location else ""


if __name__ == "__main__":
    main()
