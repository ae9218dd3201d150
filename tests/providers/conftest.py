"""A factory over this run's Redis."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from app.providers.factory import ModelFactory


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = Redis.from_url(redis_url)
    await client.flushdb()
    yield client
    await client.aclose()


@pytest.fixture
async def other_redis(redis_url: str) -> AsyncIterator[Redis]:
    """Another client, as another process would have one."""
    client = Redis.from_url(redis_url, decode_responses=True)
    yield client
    await client.aclose()


@pytest.fixture
async def factory(redis: Redis) -> AsyncIterator[ModelFactory]:
    factory = ModelFactory(redis)
    yield factory
    await factory.aclose()
