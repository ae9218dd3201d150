"""What beat asks for: the sweep."""

from celery import Task

from workers import runtime
from workers.celery_app import app, settings
from workers.schedule import SWEEP


@app.task(name=SWEEP, bind=True)
def sweep(task: Task) -> None:  # noqa: ARG001 - bound like every task
    """Send again what stood still."""
    runtime.current(settings).run(lambda worker: worker.sweeper.sweep())
