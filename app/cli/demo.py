"""`trellis demo`: the whole product once, on data that is made for it and gone afterwards."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.cli.demo_client import DemoClient
from app.cli.demo_scenario import Scenario
from app.cli.dev import Interrupted, print_step, stopped_by_signals
from app.devstack.run_folders import close_run_folder, open_run_folder
from app.devstack.stack import Stack

DOCUMENTS = Path(__file__).resolve().parents[2] / "demo" / "documents"


def demo(
    url: Annotated[
        str | None, typer.Option(help="A running API to use, such as http://127.0.0.1:8000; left out, one is started.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(envvar="TRELLIS_API_KEY", help="The key of an admin, for --url.")
    ] = None,
) -> None:
    """Upload documents, ask one question in every mode, merge two entities, delete a document; check every step."""
    console = Console()
    started = time.monotonic()
    if url is None:
        _with_own_stack(console)
        end = "everything is stopped"
    elif api_key is None:
        raise typer.BadParameter("--url needs a key: set TRELLIS_API_KEY")
    else:
        _run(console, url.rstrip("/"), api_key)
        end = "its workspace is being deleted"
    console.print(f"\n[green]The demo is done[/green] in {time.monotonic() - started:.0f} s; {end}.")


def _run(console: Console, url: str, api_key: str) -> None:
    client = DemoClient(url, api_key)
    try:
        Scenario(client, console, DOCUMENTS).run()
    finally:
        client.delete_workspace()
        client.close()


def _with_own_stack(console: Console) -> None:
    folder = open_run_folder("demo")
    stack = Stack(folder, report=lambda step, seconds: print_step(console, step, seconds))
    with stopped_by_signals() as stop:
        try:
            running = stack.start()
            client = DemoClient(running.api_url, running.api_key)
            Scenario(client, console, DOCUMENTS).run()
            client.close()
            stack.check()
        except Interrupted:
            raise SystemExit(130) from None
        except BaseException:
            console.print(f"\n[red]The demo failed.[/red] Logs, until the next run: {folder / 'logs'}", soft_wrap=True)
            raise
        finally:
            stop.may_raise = False
            stack.stop()
    close_run_folder(folder)
