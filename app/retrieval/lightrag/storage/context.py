"""Which unit of work the running task belongs to, and the errors that units raise.

The unit travels in a context variable and not in a table by workspace: a task that outlives its cancelled operation
keeps its old, closed unit and can neither read nor write in the next one.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from app.errors import Invalid, TooLarge, Unavailable
from app.retrieval.lightrag.scope import outliving

if TYPE_CHECKING:
    from app.retrieval.lightrag.storage.unit import UnitOfWork

T = TypeVar("T")

_unit: ContextVar["UnitOfWork | None"] = ContextVar("engine_unit", default=None)


class UnitConflict(Unavailable):
    """Somebody else wrote the workspace since this unit began; run the operation again in a new unit."""

    code = "unit_conflict"
    title = "Another write came between"


class OutcomeUnknown(Unavailable):
    """The connection was lost at the commit and the database cannot be asked yet whether it went in."""

    code = "unit_outcome_unknown"
    title = "Not known whether the write went in"


class UnitTooLarge(TooLarge):
    """The operation touches more than one unit may hold; the document has to be split."""

    code = "unit_too_large"
    title = "Too large for one write"


class NameTooLong(Invalid):
    """An entity's name that the engine's tables cannot hold, not even shortened."""

    code = "entity_name_too_long"
    title = "The entity's name is too long"


class UnitClosed(RuntimeError):
    """A task that outlived its operation tried to use the storages. It may not: its unit is over."""


class OutsideUnit(RuntimeError):
    """A write without a unit of work, which would not be part of any transaction."""


class NotInUnit(RuntimeError):
    """A call that would read past what the unit has collected, or write past it."""


def active_unit(workspace: str) -> "UnitOfWork | None":
    """The unit of the running task, or None. Raises `UnitClosed` if it is over, `NotInUnit` in another workspace's."""
    unit = _unit.get()
    if unit is None:
        return None
    if unit.is_closed:
        raise UnitClosed("the unit of work of this task is closed")
    if unit.workspace != workspace:
        raise NotInUnit("a unit of work belongs to one workspace")
    return unit


def writing_unit(workspace: str) -> "UnitOfWork":
    """The unit that a write goes to; raises `OutsideUnit` if there is none."""
    unit = active_unit(workspace)
    if unit is None:
        raise OutsideUnit("the graph engine may only be written inside a unit of work")
    return unit


def enter_unit(unit: "UnitOfWork") -> Callable[[], None]:
    """Make `unit` that of the running task and of all that it starts; returns what undoes it."""
    token = _unit.set(unit)
    return lambda: _unit.reset(token)


async def outside_unit(call: Callable[[], Awaitable[T]]) -> T:
    """Run LightRAG's own reading code against the database, as if there were no unit."""
    token = _unit.set(None)
    try:
        with outliving():
            return await call()
    finally:
        _unit.reset(token)
