"""How many SQL statements a piece of work sends, over all connections it uses; beginning and ending transactions is not counted."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class StatementCount:
    """Filled while `counting_statements` is open."""

    statements: int = 0


_counts: ContextVar[tuple[StatementCount, ...]] = ContextVar("statement_counts", default=())


@contextmanager
def counting_statements() -> Iterator[StatementCount]:
    """Count what is sent inside, tasks started there included; an outer count goes on counting too."""
    count = StatementCount()
    token = _counts.set((*_counts.get(), count))
    try:
        yield count
    finally:
        _counts.reset(token)


def note_statement() -> None:
    """Tell that a statement is being sent."""
    for count in _counts.get():
        count.statements += 1
