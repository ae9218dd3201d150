"""Legs that are given up when a query's time is over, on a real session too."""

import asyncio
import time
from contextlib import suppress

import pytest
from sqlalchemy import text

from app.db.counting import counting_statements
from app.db.session import Database
from app.domain.queries.deadlines import QueryDeadline, answered_within, missing_legs
from app.retrieval.deadline import asked, is_cut, leg, time_left, within
from tests.factories import Tenancy


async def slow() -> str:
    await asyncio.sleep(30)
    return "late"


async def quick() -> str:
    return "found"


async def test_without_a_limit_a_leg_is_its_work() -> None:
    assert await leg("bm25", quick, "") == "found"
    assert (is_cut(), time_left()) == (False, None)


async def test_a_leg_is_whole_or_missing() -> None:
    with within(0.2) as deadline:
        assert deadline is not None
        assert await leg("bm25", quick, "") == "found"
        assert await leg("vectors", slow, "none") == "none"
        assert await leg("vectors", quick, "none") == "none"
        assert (deadline.done, deadline.missing, is_cut()) == (["bm25"], ["vectors"], True)
    assert not is_cut()


async def test_a_model_has_half_of_the_time_even_if_its_call_does_not_end() -> None:
    async def deaf() -> str:
        while not finished.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        ended.set()
        return "late"

    finished, ended = asyncio.Event(), asyncio.Event()
    try:
        with within(0.6) as deadline:
            assert deadline is not None
            assert await asked("vectors", deaf, "none") == "none"
            assert deadline.left_for_legs > 0
            assert await leg("bm25", quick, "") == "found"
            assert (deadline.done, deadline.missing) == (["bm25"], ["vectors"])
    finally:
        finished.set()
        await ended.wait()


async def test_an_answer_without_any_leg_is_none() -> None:
    with pytest.raises(QueryDeadline):
        async with answered_within(50):
            await slow()
    with within(0.1) as deadline:
        await asked("expand", quick, None)
        await leg("vectors", slow, None)
    with pytest.raises(QueryDeadline):
        missing_legs(deadline)
    async with answered_within(None) as deadline:
        assert missing_legs(deadline) == ()


async def test_an_error_of_its_own_is_not_taken_for_the_limit() -> None:
    with pytest.raises(TimeoutError):
        async with answered_within(60_000):
            raise TimeoutError


async def test_the_server_ends_a_statement_and_the_transaction_goes_on(database: Database, tenancy: Tenancy) -> None:
    async with database.snapshot(tenancy.tenant_id) as session:
        with within(0.4) as deadline:
            assert deadline is not None
            started = time.monotonic()

            async def sleep() -> str:
                await session.execute(text("SELECT pg_sleep(60)"))
                return "late"

            assert await leg("bm25", sleep, "none", session=session) == "none"
            assert time.monotonic() - started < 30
            assert deadline.missing == ["bm25"]
            assert (await session.execute(text("SELECT 7"))).scalar_one() == 7


async def test_the_limit_of_a_leg_ends_with_it(database: Database, tenancy: Tenancy) -> None:
    shown = text("SELECT current_setting('statement_timeout')")
    async with database.snapshot(tenancy.tenant_id) as session:
        before = (await session.execute(shown)).scalar_one()

        async def inside() -> str:
            return str((await session.execute(shown)).scalar_one())

        with within(10):
            assert await leg("bm25", inside, "", session=session) not in (before, "")
        assert (await session.execute(shown)).scalar_one() == before


async def test_no_statement_of_a_leg_begins_after_its_time(database: Database, tenancy: Tenancy) -> None:
    async with database.snapshot(tenancy.tenant_id) as session:
        with within(0.25) as deadline:
            assert deadline is not None

            async def many() -> str:
                while True:
                    await session.execute(text("SELECT 1"))

            assert await leg("concepts", many, "none", session=session) == "none"
            assert deadline.missing == ["concepts"]
        assert (await session.execute(text("SELECT 7"))).scalar_one() == 7


async def test_statements_are_counted_for_whoever_waits(database: Database, tenancy: Tenancy) -> None:
    async def ask() -> None:
        async with database.tenant(tenancy.tenant_id) as session:
            await session.execute(text("SELECT 1"))
            await session.scalar(text("SELECT 2"))

    with counting_statements() as outer:
        with counting_statements() as inner:
            await asyncio.gather(ask(), ask())
        await ask()
    assert (inner.statements, outer.statements) == (4, 6)


async def test_evidence_that_was_remembered_is_an_answer_without_what_orders_it() -> None:
    async with answered_within(60_000) as deadline:
        assert deadline is not None
        deadline.give_up("rerank")
    assert missing_legs(deadline) == ("rerank",)
