"""`trellis dev`: the whole stack in the foreground, its data kept between runs."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from app.devstack.folders import create_folder, stack_home
from app.devstack.lock import exclusive
from app.devstack.processes import stop_leftovers
from app.devstack.stack import SETTINGS_FILE, RunningStack, Stack, empty_data_folder

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CHECK_SECONDS = 0.5
# With its folder: the environment that `make` creates is on nobody's PATH.
COMMAND = Path(sys.executable).with_name("trellis")


class Interrupted(Exception):
    """The user asked to stop while the stack was still starting."""


def dev(
    port: Annotated[int, typer.Option(help="Port of the API on 127.0.0.1.", min=1, max=65535)] = 8000,
    data_dir: Annotated[Path | None, typer.Option(help="Where data and logs are kept.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the data of earlier runs first.")] = False,
) -> None:
    """Run the whole product in the foreground: Postgres, Redis, API, worker and beat. Ctrl-C stops it."""
    folder = (data_dir or stack_home() / "dev").expanduser().resolve()
    create_folder(folder)
    console = Console()
    with exclusive(folder), stopped_by_signals() as stop:
        if left := stop_leftovers(folder):
            console.print(f"ended {left} processes that a killed run had left")
        if fresh:
            empty_data_folder(folder)
        stack = Stack(folder, port=port, report=lambda step, seconds: print_step(console, step, seconds))
        try:
            running = stack.start()
            stop.may_raise = False
            print_address(console, running, folder)
            while not stop.requested.wait(CHECK_SECONDS):
                stack.check()
        except Interrupted:
            pass
        finally:
            stop.may_raise = False
            console.print("stopping …")
            stack.stop()
        console.print("stopped; the data is kept in", str(folder))


def print_step(console: Console, step: str, seconds: float) -> None:
    console.print(f"[green]✓[/green] {step} [dim]{seconds:.1f} s[/dim]")


def print_address(console: Console, running: RunningStack, folder: Path) -> None:
    console.print()
    console.print(f"  API      [bold]{running.api_url}[/bold]")
    console.print(f"  docs     {running.docs_url}")
    console.print(f"  API key  {running.api_key}", soft_wrap=True)
    console.print(f"  logs     {folder / 'logs'}", soft_wrap=True)
    console.print(f"  commands . {folder / SETTINGS_FILE}; {COMMAND} model list", soft_wrap=True)
    console.print()
    console.print(
        f'  curl -H "Authorization: Bearer {running.api_key}" {running.api_url}/v1/workspaces', soft_wrap=True
    )
    console.print("\nCtrl-C stops everything.")


class StopRequest:
    """Set by a signal. While the stack starts, the signal also interrupts what is going on."""

    def __init__(self) -> None:
        self.requested = threading.Event()
        self.may_raise = True

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self.requested.set()
        if self.may_raise:
            self.may_raise = False
            raise Interrupted


@contextmanager
def stopped_by_signals() -> Iterator[StopRequest]:
    """Route Ctrl-C, kill and a closed terminal to one request to stop, for as long as the block runs."""
    stop = StopRequest()
    before = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
