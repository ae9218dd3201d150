"""The time limit of a query as a whole: what its caller gets when not even one leg of the search ended in time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from app.errors import TimedOut
from app.retrieval.deadline import Deadline, within

# Steps that find nothing by themselves.
BESIDE_THE_SEARCH: Final = frozenset(("expand", "keywords", "rerank"))


class QueryDeadline(TimedOut):
    """No leg of the search ended within `timeout_ms`, so there is nothing that could be called an answer."""

    code = "query_deadline"
    title = "The query's time limit was too short"


@asynccontextmanager
async def answered_within(milliseconds: int | None) -> AsyncIterator[Deadline | None]:
    """Raises QueryDeadline where what is inside takes longer; legs that give up in time keep it from that."""
    with within(None if milliseconds is None else milliseconds / 1000) as deadline:
        if deadline is None:
            yield None
            return
        limit = asyncio.timeout(deadline.seconds)
        try:
            async with limit:
                yield deadline
        except TimeoutError:
            if limit.expired():
                raise _too_late(deadline) from None
            raise


def missing_legs(deadline: Deadline | None) -> tuple[str, ...]:
    """Names of the legs that were given up. Raises QueryDeadline if those were all."""
    if deadline is None:
        return ()
    # Evidence that was remembered was looked for by no leg, and is there all the same.
    if set(deadline.missing) - BESIDE_THE_SEARCH and not set(deadline.done) - BESIDE_THE_SEARCH:
        raise _too_late(deadline)
    return tuple(deadline.missing)


def _too_late(deadline: Deadline) -> QueryDeadline:
    milliseconds = round(deadline.seconds * 1000)
    return QueryDeadline(f"Nothing was found within {milliseconds} ms.", timeout_ms=milliseconds)
