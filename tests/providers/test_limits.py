"""Limits that hold over processes: two factories with clients of their own stand for two processes."""

import asyncio
import sys
import textwrap
from typing import Any

import pytest
from redis.asyncio import Redis

from app.providers import limits as limits_module
from app.providers.contract import ChatMessage, ModelUnavailable, Purpose
from app.providers.factory import ModelFactory
from app.providers.limits import ModelLimits
from tests.fakes.stub_process import StubServer
from tests.providers.profiles import chat_profile

HELLO = [ChatMessage("user", "Hello.")]


async def test_calls_at_once_are_bounded_over_two_clients(
    stub_llm: StubServer, redis: Redis, other_redis: Redis
) -> None:
    stub_llm.set_faults({"delay_ms": 30, "times": 1000})
    profile = chat_profile(stub_llm.base_url, max_concurrency=3)
    factories = [ModelFactory(redis), ModelFactory(other_redis)]
    await asyncio.gather(
        *(factory.chat(profile).complete(HELLO, purpose=Purpose.ANSWER) for factory in factories for _ in range(10))
    )
    stats = stub_llm.stats()
    assert stats["calls"]["answer"] == 20
    assert stats["peak_concurrency"] == 3
    assert await redis.zcard("trellis:model-slots:stub-chat") == 0
    for factory in factories:
        await factory.aclose()


async def test_slot_of_a_killed_process_comes_free(
    redis: Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = textwrap.dedent(
        f"""
        import asyncio, os, signal
        from redis.asyncio import Redis
        from app.providers import limits
        from tests.providers.profiles import chat_profile
        limits.LEASE_SECONDS = 2
        async def hold():
            held = limits.ModelLimits(Redis.from_url({redis_url!r}), chat_profile("http://x", max_concurrency=1))
            async with held.call(1):
                os.kill(os.getpid(), signal.SIGKILL)
        asyncio.run(hold())
        """
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", holder)
    assert await process.wait() < 0
    assert await redis.zcard("trellis:model-slots:stub-chat") == 1
    limits = ModelLimits(redis, chat_profile("http://x", max_concurrency=1), max_wait_seconds=20)
    async with limits.call(1):
        assert await redis.zcard("trellis:model-slots:stub-chat") == 1


async def test_long_call_renews_its_slot(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "LEASE_SECONDS", 2)
    key = "trellis:model-slots:stub-chat"
    async with ModelLimits(redis, chat_profile("http://x", max_concurrency=1)).call(1):
        found: Any = await redis.zrange(key, 0, -1, withscores=True)
        [(slot, ends_at)] = found
        async with asyncio.timeout(30):
            while (await redis.zscore(key, slot) or 0) <= ends_at:  # noqa: ASYNC110 - Redis tells nobody
                await asyncio.sleep(0.05)


async def test_full_model_makes_the_next_call_wait_and_then_fail(redis: Redis) -> None:
    profile = chat_profile("http://x", max_concurrency=1)
    async with ModelLimits(redis, profile).call(1):
        with pytest.raises(ModelUnavailable, match="busy"):
            async with ModelLimits(redis, profile, max_wait_seconds=0.3).call(1):
                pytest.fail("two calls at once")


async def test_tokens_a_minute_are_shared(redis: Redis, other_redis: Redis) -> None:
    profile = chat_profile("http://x", tokens_per_minute=1000)
    first = ModelLimits(redis, profile)
    second = ModelLimits(other_redis, profile, max_wait_seconds=0.3)
    async with first.call(700):
        pass
    async with second.call(200):
        pass
    with pytest.raises(ModelUnavailable, match="busy"):
        async with second.call(200):
            pytest.fail("more tokens than the limit")


async def test_tokens_of_answers_count_against_the_next_call(redis: Redis) -> None:
    limits = ModelLimits(redis, chat_profile("http://x", tokens_per_minute=1000), max_wait_seconds=0.3)
    async with limits.call(300):
        limits.owe(600)
    with pytest.raises(ModelUnavailable, match="busy"):
        async with limits.call(300):
            pytest.fail("more tokens than the limit")


async def test_call_larger_than_a_minutes_share_still_passes(redis: Redis) -> None:
    limits = ModelLimits(redis, chat_profile("http://x", tokens_per_minute=100), max_wait_seconds=5)
    async with limits.call(5000):
        pass


async def test_without_redis_calls_go_on_within_the_process_limit(stub_llm: StubServer) -> None:
    stub_llm.set_faults({"delay_ms": 20, "times": 1000})
    gone = Redis.from_url("redis://127.0.0.1:1/0", socket_connect_timeout=0.5)
    factory = ModelFactory(gone)
    profile = chat_profile(stub_llm.base_url, max_concurrency=2, tokens_per_minute=10)
    before = factory.are_limits_degraded
    await asyncio.gather(*(factory.chat(profile).complete(HELLO, purpose=Purpose.ANSWER) for _ in range(6)))
    assert (before, factory.are_limits_degraded) == (False, True)
    assert stub_llm.stats()["peak_concurrency"] == 2
    await factory.aclose()
    await gone.aclose()
