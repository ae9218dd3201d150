"""Whether what this process needs answers and is what it expects: asked once for all who ask at the same time."""

import asyncio
from collections.abc import Awaitable, Mapping

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.db.revision import newest_revision
from app.db.session import CONNECTION_ERRORS, Database

# A load balancer and an orchestrator ask each process every few seconds, and after an outage all of them at once.
FRESH_SECONDS = 1.0
CHECK_SECONDS = 3.0
OK = "ok"


class SchemaBehind(Exception):
    """The database's schema is older than this code: `trellis migrate` has not run."""


class Readiness:
    def __init__(self, database: Database, redis: Redis) -> None:
        self._database = database
        self._redis = redis
        self._asking = asyncio.Lock()
        self._found: tuple[float, Mapping[str, str]] = (float("-inf"), {})

    async def checks(self) -> Mapping[str, str]:
        """`ok` or the type of what was raised, by the name of the check; at most `FRESH_SECONDS` old."""
        async with self._asking:
            found_at, found = self._found
            now = asyncio.get_running_loop().time()
            if now - found_at > FRESH_SECONDS:
                postgres, redis = await asyncio.gather(_outcome(self._schema()), _outcome(self._redis.ping()))
                found = {"postgres": postgres, "redis": redis}
                self._found = asyncio.get_running_loop().time(), found
            return found

    async def _schema(self) -> None:
        """A newer schema than ours is fine: during an upgrade it comes first."""
        revision = await self._database.schema_revision()
        if revision is None or revision < newest_revision():
            raise SchemaBehind


async def _outcome(attempt: Awaitable[object]) -> str:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await attempt
    except (*CONNECTION_ERRORS, RedisError, SchemaBehind) as error:
        return type(error).__name__
    return OK
