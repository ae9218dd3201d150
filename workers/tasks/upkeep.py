"""What beat asks for: the sweeps, and partitions for workspaces whose vectors have become many."""

import structlog
from celery import Task
from redis.exceptions import RedisError

from app.db.session import CONNECTION_ERRORS
from app.errors import Unavailable
from workers import runtime
from workers.celery_app import app, settings
from workers.schedule import EXPIRE, SEND_WEBHOOKS, SWEEP, SWEEP_LEFTOVERS, TEND_VECTORS

logger = structlog.stdlib.get_logger(__name__)


@app.task(name=SWEEP, bind=True)
def sweep(task: Task) -> None:  # noqa: ARG001 - bound like every task
    """Send again what stood still. What is away now will be there at the next sweep."""
    try:
        runtime.current(settings).run(lambda worker: worker.sweeper.sweep())
    except (*CONNECTION_ERRORS, RedisError) as error:
        logger.warning("sweep_skipped", error_type=type(error).__name__)


@app.task(name=SWEEP_LEFTOVERS, bind=True)
def sweep_leftovers(task: Task) -> None:  # noqa: ARG001 - bound like every task
    """Remove what nobody owns. What is away now will be there the next time."""
    try:
        runtime.current(settings).run(lambda worker: worker.leftovers.sweep())
    except (*CONNECTION_ERRORS, Unavailable) as error:
        logger.warning("leftovers_skipped", error_type=type(error).__name__)


@app.task(name=TEND_VECTORS, bind=True)
def tend_vectors(task: Task) -> None:  # noqa: ARG001 - bound like every task
    """Give large workspaces their own vector index. What is away now will be there the next time."""
    try:
        runtime.current(settings).run(lambda worker: worker.vectors.run())
    except CONNECTION_ERRORS as error:
        logger.warning("tending_skipped", error_type=type(error).__name__)


@app.task(name=EXPIRE, bind=True)
def expire(task: Task) -> None:  # noqa: ARG001 - bound like every task
    """Remove what has been kept for its time. What is away now will be there the next time."""
    try:
        runtime.current(settings).run(lambda worker: worker.retention.run())
    except CONNECTION_ERRORS as error:
        logger.warning("expiry_skipped", error_type=type(error).__name__)


@app.task(name=SEND_WEBHOOKS, bind=True)
def send_webhooks(task: Task) -> None:  # noqa: ARG001 - bound like every task
    """Send the events that are due. What cannot be read or written now will be due the next time."""
    try:
        runtime.current(settings).run(lambda worker: worker.webhooks.run())
    except* CONNECTION_ERRORS as errors:
        logger.warning("webhooks_skipped", error_type=type(errors.exceptions[0]).__name__)
