"""Statements as spans: the kind of a statement and the table it begins with, never its text or its parameters."""

import re
from time import perf_counter
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.ext.asyncio import AsyncEngine

from app import tracing

# As far as a statement is looked at; what stands in quotes or behind a dollar sign is a value.
LOOKED_AT = 2000
VALUES = re.compile(r"'[^']*('|$)|\$\$.*", re.DOTALL)
KIND = re.compile(r"[^a-z]*([a-z]+)", re.IGNORECASE)
TABLE = re.compile(r"\b(?:from|into|update|join)\s+(?:only\s+)?([a-z_][a-z0-9_]*)(?![a-z0-9_]*\()", re.IGNORECASE)
# A table of an embedding model is named after it, a graph's of Apache AGE after its workspace.
TABLE_CHARS = 63


def describe(statement: str) -> tuple[str, dict[str, tracing.Value]]:
    """Name and attributes of the span of `statement`."""
    seen = VALUES.sub("", statement[:LOOKED_AT])
    found = KIND.match(seen)
    kind = found[1].upper()[:16] if found else "STATEMENT"
    table = TABLE.search(seen)
    attributes: dict[str, tracing.Value] = {"db.system.name": "postgresql", "db.operation.name": kind}
    if table is None:
        return kind, attributes
    return f"{kind} {table[1]}", attributes | {"db.collection.name": table[1][:TABLE_CHARS]}


def trace_engine(engine: AsyncEngine) -> None:
    """Have each statement of SQLAlchemy noted; called only while tracing is on."""

    @event.listens_for(engine.sync_engine, "before_cursor_execute")
    def begin(_connection: Any, _cursor: Any, _statement: str, _parameters: Any, context: Any, _many: bool) -> None:
        context.traced_since = perf_counter()

    @event.listens_for(engine.sync_engine, "after_cursor_execute")
    def end(_connection: Any, _cursor: Any, statement: str, _parameters: Any, context: Any, _many: bool) -> None:
        name, attributes = describe(statement)
        tracing.note_past(name, attributes, perf_counter() - context.traced_since)

    @event.listens_for(engine.sync_engine, "handle_error")
    def fail(found: ExceptionContext) -> None:
        since = getattr(found.execution_context, "traced_since", None)
        if since is not None and found.statement is not None:
            name, attributes = describe(found.statement)
            tracing.note_past(name, attributes, perf_counter() - since, found.original_exception)


def note_query(query: Any) -> None:
    """A statement that asyncpg tells of (`add_query_logger`), in the context of whoever asked."""
    name, attributes = describe(query.query)
    tracing.note_past(name, attributes, query.elapsed, query.exception)
