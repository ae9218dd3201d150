"""Whether this process runs, and whether it can do its work now. For load balancers, so without a key."""

import asyncio
from collections.abc import Awaitable
from typing import Literal

import structlog
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from redis.exceptions import RedisError

from app.api.deps import ContainerDep
from app.api.problems import public_problems
from app.db.session import CONNECTION_ERRORS
from app.errors import Unavailable

router = APIRouter(tags=["health"])
logger = structlog.stdlib.get_logger(__name__)
CHECK_SECONDS = 3


class NotReady(Unavailable):
    """Something this process needs does not answer; `checks` says what."""

    code = "not_ready"
    title = "Not ready"


class Alive(BaseModel):
    """The process answers."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok"}]})

    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """Everything this process needs answers."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"status": "ok", "checks": {"postgres": "ok", "redis": "ok"}}]}
    )

    status: Literal["ok"] = "ok"
    checks: dict[str, str]


@router.get("/healthz", summary="Is the process alive?")
async def is_alive() -> Alive:
    """Asks nothing else: restarting this process would not mend a database."""
    return Alive()


@router.get("/readyz", summary="Is the process ready for work?", responses=public_problems(NotReady))
async def is_ready(container: ContainerDep) -> Ready:
    """One round trip each to Postgres and Redis."""
    names = ("postgres", "redis")
    outcomes = await asyncio.gather(_check(container.database.ping()), _check(container.redis.ping()))
    checks = dict(zip(names, outcomes, strict=True))
    away = [name for name, outcome in checks.items() if outcome != "ok"]
    if away:
        logger.warning("not_ready", away=away)
        raise NotReady(f"Not reachable: {', '.join(away)}.", checks=checks)
    return Ready(checks=checks)


async def _check(attempt: Awaitable[object]) -> str:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await attempt
    except (*CONNECTION_ERRORS, RedisError) as error:
        return type(error).__name__
    return "ok"
