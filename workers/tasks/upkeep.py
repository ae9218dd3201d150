"""What beat asks for, by name. What is away now will be there the next time."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import structlog
from celery import Task
from redis.exceptions import RedisError

from app.bootstrap import Worker
from app.db.session import CONNECTION_ERRORS
from app.errors import Unavailable
from app.metrics import UPKEEP_RUNS
from workers import runtime
from workers.celery_app import app, settings, turns
from workers.schedule import EXPIRE, SEND_WEBHOOKS, SWEEP, SWEEP_LEFTOVERS, TEND_VECTORS

logger = structlog.stdlib.get_logger(__name__)

UPKEEP: Mapping[str, Callable[[Worker], Coroutine[Any, Any, object]]] = {
    SWEEP: lambda worker: worker.sweeper.sweep(),
    SWEEP_LEFTOVERS: lambda worker: worker.leftovers.sweep(),
    TEND_VECTORS: lambda worker: worker.vectors.run(),
    EXPIRE: lambda worker: worker.retention.run(),
    SEND_WEBHOOKS: lambda worker: worker.webhooks.run(),
}


def keep_up(task: Task) -> None:
    """The body of them all."""
    outcome = "done"
    with turns.of(task.name) as is_free:
        if not is_free:
            return
        try:
            runtime.current(settings).run(UPKEEP[task.name])
        except* (*CONNECTION_ERRORS, RedisError, Unavailable) as errors:
            outcome = "skipped"
            logger.warning("upkeep_skipped", task=task.name, error_type=type(errors.exceptions[0]).__name__)
    UPKEEP_RUNS.labels(task.name, outcome).inc()


for name in UPKEEP:
    app.task(keep_up, name=name, bind=True)
