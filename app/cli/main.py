"""The `trellis` command: puts the subcommands together and turns expected failures into one line and an exit code."""

import sys
from importlib.util import find_spec

import typer

from app.cli import keys, migrate, models, tenants
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
app.add_typer(migrate.database_commands, name="db")
app.add_typer(models.model_commands, name="model")
app.add_typer(tenants.tenant_commands, name="tenant")
app.add_typer(keys.key_commands, name="key")
app.add_typer(tenants.tenant_commands, name="tenant")
app.add_typer(keys.key_commands, name="key")

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
        typer.secho(f"trellis: {error}", fg="red", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
