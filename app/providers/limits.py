"""How hard a model may be driven by all processes together: calls at once and tokens a minute, kept in Redis.

While Redis cannot be reached calls go on with this process's own limit, a warning is logged and `is_degraded` is set.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final
from uuid import uuid4

import structlog
from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.metrics import MODEL_WAIT_SECONDS
from app.providers.contract import ModelProfile, ModelUnavailable

log = structlog.get_logger(__name__)

# A slot is a member of a sorted set scored with the time its lease ends (in Redis' own time), so the slot of a killed
# process is free again after LEASE_SECONDS.
_ACQUIRE: Final = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
redis.call('EXPIRE', KEYS[1], tonumber(ARGV[3]) * 2)
return 1
"""
_RENEW: Final = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
redis.call('EXPIRE', KEYS[1], tonumber(ARGV[2]) * 2)
return 1
"""
LEASE_SECONDS: Final = 30
_REDIS_TIMEOUT_SECONDS: Final = 3.0
_WARN_EVERY_SECONDS: Final = 30.0
_FIRST_PAUSE_SECONDS: Final = 0.02
_LONGEST_PAUSE_SECONDS: Final = 0.5
_LONGEST_RATE_PAUSE_SECONDS: Final = 2.0
_REDIS_ERRORS: Final = (RedisError, OSError, TimeoutError)


class ModelLimits:
    """The limits of one model profile, as seen from one event loop."""

    def __init__(self, redis: "Redis", profile: ModelProfile, *, max_wait_seconds: float = 600.0) -> None:
        self._redis = redis
        self._profile = profile
        self._max_wait_seconds = max_wait_seconds
        self._key = f"trellis:model-slots:{profile.name}"
        self._here = asyncio.Semaphore(profile.max_concurrency)
        self._acquire = redis.register_script(_ACQUIRE)
        self._renew = redis.register_script(_RENEW)
        self._rate: SlidingWindowCounterRateLimiter | None = None
        self._debt = 0  # tokens of answers, known only afterwards: added to what the next call asks for
        self._warned_at = -_WARN_EVERY_SECONDS
        self.is_degraded = False

    @property
    def counts_tokens(self) -> bool:
        """Whether `call` has to know the tokens; counting them takes about as long as the rest of a call."""
        return self._profile.tokens_per_minute is not None

    @asynccontextmanager
    async def call(self, tokens: int) -> AsyncIterator[None]:
        """Hold one slot for a call that sends `tokens`; waits until the limits allow it.

        Raises `ModelUnavailable` after `max_wait_seconds`.
        """
        async with AsyncExitStack() as stack:
            began = time.monotonic()
            try:
                async with asyncio.timeout(self._max_wait_seconds):
                    await stack.enter_async_context(self._here)
                    await stack.enter_async_context(self._slot())
                    await self._wait_for_rate(tokens)
            except TimeoutError as error:
                raise ModelUnavailable(
                    f"The model '{self._profile.name}' was busy for {self._max_wait_seconds:g} seconds.",
                    profile=self._profile.name,
                ) from error
            finally:
                MODEL_WAIT_SECONDS.labels(self._profile.name).observe(time.monotonic() - began)
            yield

    def owe(self, tokens: int) -> None:
        """Count tokens that a call used beyond those it asked for."""
        if self.counts_tokens:
            self._debt += tokens

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        token = uuid4().hex
        if not await self._take_slot(token):
            yield
            return
        renewal = asyncio.create_task(self._keep(token))
        try:
            yield
        finally:
            renewal.cancel()
            await self._release(token)

    async def _take_slot(self, token: str) -> bool:
        """Wait for a slot; False where Redis cannot be asked, and the call goes on without one."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                async with asyncio.timeout(_REDIS_TIMEOUT_SECONDS):
                    arguments: list[str | int] = [token, self._profile.max_concurrency, LEASE_SECONDS]
                    is_taken = await self._acquire(keys=[self._key], args=arguments)
            except _REDIS_ERRORS as error:
                self._degrade(error)
                return False
            self.is_degraded = False
            if is_taken:
                return True
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    async def _keep(self, token: str) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            try:
                await self._renew(keys=[self._key], args=[token, LEASE_SECONDS])
            except _REDIS_ERRORS as error:
                self._degrade(error)

    async def _release(self, token: str) -> None:
        try:
            async with asyncio.timeout(_REDIS_TIMEOUT_SECONDS):
                await self._redis.zrem(self._key, token)
        except _REDIS_ERRORS as error:
            # The lease ends by itself.
            self._degrade(error)

    async def _wait_for_rate(self, tokens: int) -> None:
        per_minute = self._profile.tokens_per_minute
        if per_minute is None:
            return
        tokens, self._debt = tokens + self._debt, 0
        item = RateLimitItemPerMinute(per_minute)
        # A call larger than the limit would never pass: it takes a whole minute's share.
        cost = max(1, min(tokens, per_minute))
        while True:
            try:
                async with asyncio.timeout(_REDIS_TIMEOUT_SECONDS):
                    limiter = self._limiter()
                    if await limiter.hit(item, "model", self._profile.name, cost=cost):
                        return
                    window = await limiter.get_window_stats(item, "model", self._profile.name)
            except _REDIS_ERRORS as error:
                self._degrade(error)
                return
            pause = min(max(window.reset_time - time.time(), 0.05), _LONGEST_RATE_PAUSE_SECONDS)
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - jitter, not a secret

    def _limiter(self) -> SlidingWindowCounterRateLimiter:
        if self._rate is None:
            storage = RedisStorage(
                "async+redis://",
                implementation="redispy",
                key_prefix="trellis:limits",
                connection_pool=self._redis.connection_pool,  # type: ignore[arg-type]
            )
            self._rate = SlidingWindowCounterRateLimiter(storage)
        return self._rate

    def _degrade(self, error: Exception) -> None:
        self.is_degraded = True
        if time.monotonic() - self._warned_at >= _WARN_EVERY_SECONDS:
            self._warned_at = time.monotonic()
            log.warning("model_limits_degraded", profile=self._profile.name, error=type(error).__name__)
