"""The time limit of one query: its legs are given up one by one when it nears, and what was found in time is the answer.

It travels in a context variable, as no engine decides by it: an answer that is whole is the same with and without one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, TypeVar

from app.db.session import StatementTimedOut, TenantSession

Found = TypeVar("Found")
Other = TypeVar("Other")
# Of the time limit for the legs; the rest is for loading, ordering and rendering what they found.
LEGS_SHARE: Final = 0.8
# Of what is left for the legs, for one that waits for a model.
MODELS_SHARE: Final = 0.5


@dataclass
class Deadline:
    """When a query must have ended, and how its legs have fared."""

    seconds: float
    started: float = field(default_factory=time.monotonic)
    done: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def left(self) -> float:
        """Seconds until the answer must be there; never below 0."""
        return max(0.0, self.started + self.seconds - time.monotonic())

    @property
    def left_for_legs(self) -> float:
        return max(0.0, self.started + self.seconds * LEGS_SHARE - time.monotonic())

    def give_up(self, leg: str) -> None:
        """Also one that had begun well: a leg is whole or missing."""
        if leg not in self.missing:
            self.missing.append(leg)
        if leg in self.done:
            self.done.remove(leg)

    def end(self, leg: str) -> None:
        if leg not in (*self.done, *self.missing):
            self.done.append(leg)


_deadline: ContextVar[Deadline | None] = ContextVar("query_deadline", default=None)


@contextmanager
def within(seconds: float | None) -> Iterator[Deadline | None]:
    """The time limit of what is asked inside; None for none."""
    deadline = Deadline(seconds) if seconds is not None else None
    token = _deadline.set(deadline)
    try:
        yield deadline
    finally:
        _deadline.reset(token)


def time_left() -> float | None:
    """Seconds that a step after the search may take; None without a time limit."""
    deadline = _deadline.get()
    return None if deadline is None else deadline.left * LEGS_SHARE


def give_up(name: str) -> None:
    """Tell that a step was left out for want of time."""
    deadline = _deadline.get()
    if deadline is not None:
        deadline.give_up(name)


def is_cut() -> bool:
    """Whether a leg of the query under way was given up: such an answer is not to be remembered."""
    deadline = _deadline.get()
    return deadline is not None and bool(deadline.missing)


async def leg(
    name: str,
    work: Callable[[], Awaitable[Found]],
    otherwise: Other,
    *,
    session: TenantSession | None = None,
    share: float = 1,
) -> Found | Other:
    """What `work` finds, or `otherwise` when its `share` of the time for legs is over, which is noted under `name`.

    With `session` the leg's statements are ended by the server and its transaction goes on; without, `work` is cancelled
    and waited for, for it may use a connection.
    """
    deadline = _deadline.get()
    if deadline is None:
        return await work()
    left = deadline.left_for_legs * share
    if not left:
        deadline.give_up(name)
        return otherwise
    limit: AbstractAsyncContextManager[object]
    limit = session.limited(left) if session is not None else nullcontext()
    try:
        async with limit, asyncio.timeout(None if session is not None else left):
            found = await work()
    except (StatementTimedOut, TimeoutError):
        deadline.give_up(name)
        return otherwise
    deadline.end(name)
    return found


async def asked(name: str, work: Callable[[], Awaitable[Found]], otherwise: Other) -> Found | Other:
    """As `leg`, for what waits for a model and holds no connection: it has half of the time for legs, for others come
    after it, and a call that does not end when it is cancelled is waited for no longer."""
    deadline = _deadline.get()
    if deadline is None:
        return await work()
    task = asyncio.ensure_future(work())
    try:
        done, _ = await asyncio.wait({task}, timeout=deadline.left_for_legs * MODELS_SHARE)
        if not done:
            task.cancel()
            # What was asked is booked when it ends.
            await asyncio.wait({task}, timeout=deadline.left_for_legs * (1 - LEGS_SHARE))
            deadline.give_up(name)
            return otherwise
        deadline.end(name)
        return task.result()
    finally:
        task.cancel()
