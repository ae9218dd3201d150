"""Whether this process runs, and whether it can do its work now. For load balancers, so without a key."""

from typing import Literal

import structlog
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict

from app.api.deps import ContainerDep
from app.api.problems import public_problems
from app.domain.readiness import OK
from app.errors import Unavailable

router = APIRouter(tags=["health"])
logger = structlog.stdlib.get_logger(__name__)


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
    """One round trip each to Postgres, whose schema must not be older than this process, and to Redis; at most once a
    second, however many ask."""
    checks = dict(await container.readiness.checks())
    away = [name for name, outcome in checks.items() if outcome != OK]
    if away:
        logger.warning("not_ready", away=away)
        raise NotReady(f"Not ready: {', '.join(f'{name} ({checks[name]})' for name in away)}.", checks=checks)
    return Ready(checks=checks)
