"""`trellis demo`: the whole product once, on data that is made for it and gone afterwards."""

import time
from pathlib import Path

from rich.console import Console

from app.cli.demo_client import DemoClient
from app.cli.demo_scenario import Scenario
from app.cli.dev import Interrupted, print_step, stopped_by_signals
from app.devstack.run_folders import close_run_folder, open_run_folder
from app.devstack.stack import Stack

DOCUMENTS = Path(__file__).resolve().parents[2] / "demo" / "documents"


def demo() -> None:
    """Upload documents, ask one question in every mode, merge two entities, delete a document; check every step."""
    console = Console()
    started = time.monotonic()
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
    console.print(f"\n[green]The demo is done[/green] in {time.monotonic() - started:.0f} s; everything is stopped.")
