"""One task per job of ingestion, under the job's own name."""

from celery import Task

from app.jobs import ALL_JOBS, Job
from workers.celery_app import app, settings
from workers.task import execute


def register(job_type: type[Job]) -> Task:
    """A task that runs jobs of one type."""

    def run(task: Task, **payload: str) -> None:
        execute(task, settings, job_type.parse(payload))

    # How often a job is repeated is decided where its state is known.
    return app.task(run, name=job_type.name, bind=True, max_retries=None)


TASKS = [register(job_type) for job_type in ALL_JOBS]
