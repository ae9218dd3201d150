"""The outermost handler of every job: runs it on the process's loop and turns whatever it raises into a state.

No exception leaves it, so neither Celery's log nor its messages quote a document.
"""

import asyncio
import os
import socket
from contextlib import AbstractContextManager
from time import perf_counter
from uuid import uuid4

import structlog
from celery import Task
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from app import tracing
from app.bootstrap import Worker
from app.db.session import CONNECTION_ERRORS, is_unavailable
from app.domain.ingestion.runner import JobRunner
from app.errors import AppError
from app.jobs import Job
from app.logs import where_raised
from app.metrics import JOB_SECONDS
from app.settings import Settings
from workers import runtime

logger = structlog.stdlib.get_logger(__name__)

RESEND_SECONDS = 1.0
BROKER_ERRORS = (OperationalError, RedisError, OSError)
# A database that hangs shows as a time limit that is over.
OUTAGES = (RedisError, TimeoutError)


def execute(task: Task, settings: Settings, job: Job) -> None:
    """Run `job`; if it is to be repeated, send it again with a delay and end this delivery."""
    # Celery keeps its request by thread: on the loop's there is none.
    request, carrier, runs = request_id(task), trace_of(task), task.request.retries + 1

    async def work(worker: Worker) -> float | None:
        try:
            chosen = await worker.jobs.choose(job)
        except asyncio.CancelledError:
            return RESEND_SECONDS
        if chosen is None:
            return None
        # Work that another request asked for is neither logged under this one's id nor part of its trace.
        is_asked = chosen == job
        with (
            structlog.contextvars.bound_contextvars(request_id=request if is_asked else None, **chosen.payload()),
            _span(chosen, carrier, is_continued=is_asked),
        ):
            delay = await attempt(worker.jobs, chosen, runs=runs)
            await follow_up(worker.jobs, chosen)
        return delay

    with structlog.contextvars.bound_contextvars(job=job.name, task_id=task.request.id):
        delay = runtime.current(settings).run(work)
        if delay is not None:
            _repeat(task, job, delay)


async def follow_up(jobs: JobRunner, job: Job) -> None:
    try:
        await jobs.follow_up(job)
    except CONNECTION_ERRORS as error:
        # What waits is found by the sweeper.
        logger.warning("turn_not_chosen", error_type=type(error).__name__)


def _repeat(task: Task, job: Job, delay: float) -> None:
    """Raises what ends this delivery once the job has been sent again; if the broker is away, the sweeper sends it."""
    try:
        retry = task.retry(countdown=delay, throw=False)
    except BROKER_ERRORS as error:
        logger.warning("jobs_not_published", jobs=[job.name], error_type=type(error).__name__)
    else:
        raise retry


async def attempt(jobs: JobRunner, job: Job, *, runs: int) -> float | None:
    """The seconds after which the job must be run again, or None. Raises nothing but what ends the process."""
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex}"
    started, outcome = perf_counter(), "done"
    try:
        await jobs.run(job, owner)
    except asyncio.CancelledError:
        # The process is told to stop. Its claim is given back first, so that another worker goes on at once.
        outcome = "handed_back"
        return await _hand_back(jobs, job, owner)
    except Exception as error:
        outcome = "failed"
        _report(error)
        return await _conclude(jobs, job, owner, error, runs)
    finally:
        JOB_SECONDS.labels(job.name, outcome).observe(perf_counter() - started)
    return None


def _report(error: Exception) -> None:
    """Outages are expected, and told without a place in the code; everything else that is no error of ours is a fault."""
    if is_unavailable(error) or isinstance(error, OUTAGES):
        logger.warning("job_interrupted", error_type=type(getattr(error, "orig", None) or error).__name__)
    elif not isinstance(error, AppError):
        logger.error("job_crashed", **where_raised(error))


async def _hand_back(jobs: JobRunner, job: Job, owner: str) -> float | None:
    try:
        must_resend = await jobs.hand_back(job, owner)
    except CONNECTION_ERRORS as failure:
        logger.error("job_not_handed_back", error_type=type(failure).__name__)
        return None
    logger.info("job_handed_back")
    return RESEND_SECONDS if must_resend else None


async def _conclude(jobs: JobRunner, job: Job, owner: str, error: Exception, runs: int) -> float | None:
    try:
        return await jobs.conclude(job, owner, error, runs=runs)
    except CONNECTION_ERRORS as failure:
        # The lease runs out by itself, and the sweeper sends the job again.
        logger.error("job_not_concluded", error_type=type(failure).__name__)
        return None


def _span(job: Job, carrier: tracing.Carrier, *, is_continued: bool) -> AbstractContextManager[tracing.Span]:
    """In the trace of whoever asked for the job; where that is not known, in one of its own that points to the message."""
    ids = {f"trellis.{name}": value for name, value in job.payload().items()}
    attributes = {
        "messaging.system": "celery", "messaging.operation.type": "process", "messaging.destination.name": job.queue,
        "trellis.job": job.name, **ids,
    }  # fmt: skip
    place = {"parent": carrier} if is_continued else {"link": carrier}
    return tracing.span(f"process {job.queue}", attributes, kind="consumer", **place)


def trace_of(task: Task) -> tracing.Carrier:
    """The trace that the job was sent in; empty if there was none."""
    found: str | None = getattr(task.request, "traceparent", None)
    return {"traceparent": found} if found else {}


def request_id(task: Task) -> str | None:
    """The id of the request that the job comes from, as its publisher sent it along."""
    found: str | None = getattr(task.request, "request_id", None)
    return found
