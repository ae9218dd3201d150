"""The Celery application of workers and beat: `celery -A workers.celery_app worker` (or `beat`) needs no options.

A worker is one process with a pool of threads that wait, and one event loop on which all jobs run (see runtime.py).
Celery's guarantees are used as hints only: claims and leases in Postgres decide who works on what.
"""

import logging
from typing import Any

from celery import Celery, signals
from kombu.entity import Exchange, Queue

from app.jobs import QUEUES
from app.logs import configure_logging
from app.settings import Settings, refuse_engine_hijack
from workers.schedule import SEND_WEBHOOKS, SWEEP_QUEUE, beat_schedule
from workers.turns import Turns

# Before anything imports the graph engine, which would read its settings from the environment and from files here.
refuse_engine_hijack()
settings = Settings()
# What is not somebody's document: upkeep, and jobs that take long and can wait.
turns = Turns(settings.worker_concurrency)

# The longest that one job can take: its stages have time limits of their own, and embedding gets the rest.
LONGEST_JOB_SECONDS = (
    settings.parse_timeout_seconds + settings.extract_timeout_seconds + settings.merge_timeout_seconds + 1800
)


def queue(name: str) -> Queue:
    """As a publisher declares a queue that it was only told the name of."""
    return Queue(name, Exchange(name), routing_key=name)  # type: ignore[no-untyped-call]


app = Celery("trellis", broker=settings.redis_url.get_secret_value())
app.conf.update(
    accept_content=["json"],
    task_serializer="json",
    task_ignore_result=True,
    # A message is given back when its work is done, so a worker that dies loses none.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_queues=[queue(name) for name in (SWEEP_QUEUE, *QUEUES)],
    task_default_queue=QUEUES[1],
    worker_pool="threads",
    worker_consumer="workers.consumer:LastingConsumer",
    worker_concurrency=settings.worker_concurrency,
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    # A delivery that is repeated while its job still runs would find it claimed; later is cheaper than too early.
    broker_transport_options={
        "visibility_timeout": LONGEST_JOB_SECONDS + 600,
        "queue_order_strategy": "priority",
        "socket_connect_timeout": 5,
    },
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    beat_schedule=beat_schedule(settings),
    # Kept in memory: nothing of the schedule is worth a file.
    beat_scheduler="celery.beat:Scheduler",
)


def is_worth_a_line(record: logging.LogRecord) -> bool:
    """Looking for what is due to webhooks every two seconds is not, while it goes well."""
    return record.levelno > logging.INFO or SEND_WEBHOOKS not in record.getMessage()


@signals.setup_logging.connect
def _set_up_logging(**_: Any) -> None:
    configure_logging(settings)
    for name in ("celery.beat", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).addFilter(is_worth_a_line)


@signals.celeryd_init.connect
def _load_tasks(**_: Any) -> None:
    # Only a worker needs the tasks and all that they import; beat starts in a fraction of the time and memory.
    for module in ("workers.tasks.ingestion", "workers.tasks.upkeep", "workers.shutdown", "workers.metrics"):
        app.loader.import_task_module(module)
