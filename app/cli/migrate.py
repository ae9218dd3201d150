"""`trellis migrate` and `trellis db …`: the schema, and what it stands on."""

import asyncio
from typing import Annotated

import typer

from app.db.provision import RolePasswords, provision_database
from app.db.schema import upgrade_schema
from app.db.session import Database
from app.domain.models.offline import register_offline_models
from app.domain.models.service import ModelProfiles
from app.settings import Settings

database_commands = typer.Typer(no_args_is_help=True, help="Create roles and database.")


def migrate(revision: Annotated[str, typer.Argument(help="Where to go; the newest by default.")] = "head") -> None:
    """Bring the database of TRELLIS_OWNER_DATABASE_URL to the newest schema, with the offline models registered."""
    settings = Settings()
    secret = settings.owner_database_url
    if secret is None:
        raise typer.BadParameter("set TRELLIS_OWNER_DATABASE_URL: migrations run as the owner role")
    upgrade_schema(secret.get_secret_value(), revision)
    if revision == "head":
        asyncio.run(_register_models(settings, secret.get_secret_value()))
    typer.echo(f"The schema is at {revision}.")


@database_commands.command("bootstrap")
def bootstrap_database(
    admin_url: Annotated[
        str, typer.Option(envvar="TRELLIS_ADMIN_DATABASE_URL", help="A role that may create roles and databases.")
    ],
    owner_password: Annotated[str, typer.Option(envvar="TRELLIS_OWNER_PASSWORD")],
    app_password: Annotated[str, typer.Option(envvar="TRELLIS_APP_PASSWORD")],
    engine_password: Annotated[str, typer.Option(envvar="TRELLIS_ENGINE_PASSWORD")],
    name: Annotated[str, typer.Option(help="The database to create.")] = "trellis",
    age: Annotated[
        bool, typer.Option("--age", help="Also prepare it for graphs in Apache AGE (as a superuser).")
    ] = False,
) -> None:
    """Create the three roles, the database and the vector extension, as far as they are missing."""
    passwords = RolePasswords(owner=owner_password, app=app_password, engine=engine_password)
    asyncio.run(provision_database(admin_url, name, passwords, age=age))
    typer.echo(f"Database {name} and its roles are ready; next: trellis migrate")


async def _register_models(settings: Settings, owner_url: str) -> None:
    database = Database(owner_url, pool_size=1)
    try:
        await register_offline_models(ModelProfiles(database, settings.secret_key))
    finally:
        await database.close()
