"""What several searches for one question ask of models alike is asked once, and the searches after the first get its answer.

It travels in a context variable, as the time limit does: no engine finds anything else because of it.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Found = TypeVar("Found")

_answers: ContextVar[dict[Hashable, Any] | None] = ContextVar("answers_of_models", default=None)


@contextmanager
def asking_once() -> Iterator[None]:
    """Inside, one question is put to one workspace in several ways, one after the other."""
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


async def once(key: Hashable, work: Callable[[], Awaitable[Found]]) -> Found:
    """What `work` answers, or what it answered under this key before. A failure is not remembered, nor is None."""
    answers = _answers.get()
    if answers is None:
        return await work()
    found: Found | None = answers.get(key)
    if found is None:
        found = answers[key] = await work()
    return found
