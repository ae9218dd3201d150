"""Pure functions run in a process beside this one: results, errors and the end of that process."""

import asyncio
import os
import signal
import time
from contextlib import aclosing

import psutil
import pytest

from app.aside import Aside
from app.errors import Invalid


def double(number: int) -> int:
    return 2 * number


def process_id() -> int:
    return os.getpid()


def refuse(reason: str) -> None:
    raise Invalid(reason, code="refused", limit=3)


class Secretive(Exception):
    def __init__(self, *, only_by_name: str) -> None:
        super().__init__(only_by_name)


def fail_strangely() -> None:
    raise Secretive(only_by_name="text of a document")


async def test_calls_are_answered_in_their_order_by_one_other_process() -> None:
    async with aclosing(Aside()) as aside:
        assert await asyncio.gather(*(aside.run(double, number) for number in range(20))) == list(range(0, 40, 2))
        first, second = await aside.run(process_id), await aside.run(process_id)
        assert first == second != os.getpid()


async def test_an_error_comes_back_as_what_it_is() -> None:
    async with aclosing(Aside()) as aside:
        with pytest.raises(Invalid, match="too long") as caught:
            await aside.run(refuse, "too long")
        assert (caught.value.reason, caught.value.facts) == ("refused", {"limit": 3})


async def test_an_error_that_does_not_survive_the_way_is_told_by_its_class_only() -> None:
    async with aclosing(Aside()) as aside:
        with pytest.raises(RuntimeError, match="Secretive while reading a text"):
            await aside.run(fail_strangely)
        assert await aside.run(double, 2) == 4


async def test_a_caller_that_was_cancelled_does_not_get_another_ones_answer() -> None:
    async with aclosing(Aside()) as aside:
        lost = asyncio.create_task(aside.run(double, 1))
        await asyncio.sleep(0)
        lost.cancel()
        assert await aside.run(double, 21) == 42


async def test_a_process_that_was_killed_fails_its_calls_and_is_started_again() -> None:
    async with aclosing(Aside()) as aside:
        helper = await aside.run(process_id)
        os.kill(helper, signal.SIGSTOP)
        call = asyncio.create_task(aside.run(double, 1))
        await asyncio.sleep(0)
        os.kill(helper, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="has ended"):
            await call
        assert await aside.run(process_id) != helper


async def test_closing_ends_the_process() -> None:
    aside = Aside()
    helper = psutil.Process(await aside.run(process_id))
    await aside.aclose()
    assert not helper.is_running()


async def test_closing_ends_a_process_that_is_at_work() -> None:
    aside = Aside()
    helper = psutil.Process(await aside.run(process_id))
    call = asyncio.create_task(aside.run(time.sleep, 600))
    await asyncio.sleep(0)
    call.cancel()
    async with asyncio.timeout(60):
        await aside.aclose()
    assert not helper.is_running()
