"""The `trellis` command: puts the subcommands together and turns expected failures into one line and an exit code."""

import sys

import typer

from app.cli import migrate
from app.errors import AppError

app = typer.Typer(
    name="trellis", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__
)
app.command("migrate")(migrate.migrate)
app.add_typer(migrate.database_commands, name="db")


def main() -> None:
    try:
        app()
    except AppError as error:
        typer.secho(f"trellis: {error.detail} [{error.reason}]", fg="red", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
