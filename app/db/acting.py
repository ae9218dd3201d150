"""Who is acting: noted once a request or command, and handed to the database with every transaction begun meanwhile.

Triggers write the audit log from it, so no code has to remember to.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Acting:
    """A caller: `actor` is `key:<id>`, `user:<subject>` or `operator`; `action` names the route or the command."""

    actor: str
    action: str
    address: str | None = None
    request_id: str | None = None


_acting: ContextVar[Acting | None] = ContextVar("acting", default=None)


@contextmanager
def nobody_acts() -> Iterator[None]:
    """The block begins without a caller; whoever is noted inside is forgotten at its end."""
    token = _acting.set(None)
    try:
        yield
    finally:
        _acting.reset(token)


def note_caller(acting: Acting) -> None:
    """From now on, and for tasks started from here, transactions are this caller's."""
    _acting.set(acting)


def audit_setting() -> str:
    """What `app.audit` of a transaction must be; empty while nobody acts."""
    acting = _acting.get()
    return json.dumps(asdict(acting)) if acting is not None else ""
