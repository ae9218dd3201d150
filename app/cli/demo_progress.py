"""How far the documents of the demo are: a table that changes in place on a terminal, else a line per milestone."""

import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

FINAL = {"ready", "partial", "failed", "cancelled"}
COLOURS = {"ready": "green", "running": "yellow", "failed": "red"}


class Progress:
    """Shows documents until they are done; used as a context manager."""

    def __init__(self, console: Console, files: Iterable[str]) -> None:
        self.done: set[str] = set()
        self._console = console
        self._started = time.monotonic()
        self._rows: dict[str, Mapping[str, Any] | None] = dict.fromkeys(files)
        self._milestones: dict[str, str] = {}
        self._live = Live(self._table(), console=console) if console.is_terminal else None

    def __enter__(self) -> None:
        if self._live is not None:
            self._live.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, file: str, document: Mapping[str, Any]) -> None:
        """Take in the newest state of a document."""
        self._rows[file] = document
        if document["status"] in FINAL:
            self.done.add(file)
        if self._live is not None:
            self._live.update(self._table())
        else:
            self._print_milestone(file, document)

    def _print_milestone(self, file: str, document: Mapping[str, Any]) -> None:
        finished = [name for name, engine in document["engines"].items() if engine["state"] in FINAL]
        milestone = document["status"] if document["status"] in FINAL else " and ".join(finished)
        if milestone and milestone != self._milestones.get(file):
            self._milestones[file] = milestone
            states = " · ".join(f"{name} {_state(engine)}" for name, engine in document["engines"].items())
            line = f"  {time.monotonic() - self._started:5.1f} s  {file:30} {document['status']:10} {states}"
            self._console.print(line, soft_wrap=True, highlight=False)

    def _table(self) -> Table:
        names = list(dict.fromkeys(name for row in self._rows.values() if row for name in row["engines"]))
        table = Table("document", "status", *names, box=None, padding=(0, 2))
        for file, row in self._rows.items():
            engines = [_coloured(row["engines"][name]) if row else "" for name in names]
            table.add_row(file, _paint(row["status"]) if row else "", *engines)
        return table


def _state(engine: Mapping[str, Any]) -> str:
    chunks = f" {engine['chunks_done']}/{engine['chunks_total']}" if engine["chunks_total"] else ""
    return f"{engine['state']}{chunks}"


def _coloured(engine: Mapping[str, Any]) -> str:
    return _paint(_state(engine))


def _paint(text: str) -> str:
    colour = COLOURS.get(text.split()[0], "dim")
    return f"[{colour}]{text}[/{colour}]"
