"""Requests a minute by tenant, counted in Redis over all processes. While Redis is away requests are not limited."""

import asyncio
import math
import time
from typing import Final
from uuid import UUID

import structlog
from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.domain.limits.errors import RateLimited

logger = structlog.stdlib.get_logger(__name__)

REDIS_TIMEOUT_SECONDS: Final = 0.5
# After a failure Redis is left alone for so long, so that its absence does not slow every request down.
PAUSE_SECONDS: Final = 5.0


class RequestRates:
    """Belongs to one event loop, as its connections do."""

    def __init__(self, redis: "Redis") -> None:
        storage = RedisStorage(
            "async+redis://",
            implementation="redispy",
            key_prefix="trellis:rates",
            connection_pool=redis.connection_pool,  # type: ignore[arg-type]
        )
        self._limiter = SlidingWindowCounterRateLimiter(storage)
        self._away_until = 0.0

    async def count(self, tenant_id: UUID, per_minute: int | None) -> None:
        """Count one request. Raises RateLimited if it is one too many."""
        if per_minute is None or time.monotonic() < self._away_until:
            return
        item = RateLimitItemPerMinute(per_minute)
        try:
            async with asyncio.timeout(REDIS_TIMEOUT_SECONDS):
                if per_minute > 0 and await self._limiter.hit(item, str(tenant_id)):
                    return
                window = await self._limiter.get_window_stats(item, str(tenant_id))
        except (RedisError, OSError, TimeoutError) as error:
            self._away_until = time.monotonic() + PAUSE_SECONDS
            logger.warning("rates_not_limited", error_type=type(error).__name__)
            return
        seconds = max(1, math.ceil(window.reset_time - time.time()))
        raise RateLimited(
            f"Your plan allows {per_minute} requests a minute.", limit=per_minute, retry_after_seconds=seconds
        )
