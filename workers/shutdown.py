"""Ends a worker's running jobs and its event loop when Celery shuts the process down."""

from typing import Any

from celery import signals

from workers import runtime
from workers.celery_app import settings


@signals.worker_shutting_down.connect
def _stop_jobs_in_time(**_: Any) -> None:
    runtime.stop_jobs_after(settings.shutdown_grace_seconds)


@signals.worker_shutdown.connect
@signals.worker_process_shutdown.connect
def _close_runtime(**_: Any) -> None:
    runtime.close()
