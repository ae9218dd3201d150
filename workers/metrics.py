"""Tells a worker's metrics over HTTP, where a port is set: what the processes of this worker have counted."""

import os
from typing import Any

from celery import signals
from prometheus_client import start_http_server

from app.metrics import process_registry
from workers.celery_app import settings


@signals.worker_init.connect
def _tell_metrics(sender: Any, **_: Any) -> None:
    """In the main process, before its pool is made. A worker that cannot do what it is told does not start."""
    if settings.worker_metrics_port is None:
        return
    if "prefork" in sender.pool_cls.__module__ and "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        raise SystemExit(
            "TRELLIS_WORKER_METRICS_PORT with --pool processes needs PROMETHEUS_MULTIPROC_DIR, an empty folder"
        )
    try:
        start_http_server(settings.worker_metrics_port, settings.worker_metrics_host, process_registry())
    except OSError as error:
        raise SystemExit(f"TRELLIS_WORKER_METRICS_PORT cannot be listened to: {error.strerror}") from error
