"""One task per job of ingestion, under the job's own name."""

from celery import Task

from app.jobs import ALL_JOBS, Job, RefreshThemes
from workers.celery_app import app, settings, turns
from workers.task import execute

# They never take a worker's last slot. One that finds no slot is dropped, and sent again by the sweeper.
IN_TURNS: tuple[type[Job], ...] = (RefreshThemes,)


def register(job_type: type[Job]) -> Task:
    """A task that runs jobs of one type."""

    def run(task: Task, **payload: str) -> None:
        if job_type not in IN_TURNS:
            execute(task, settings, job_type.parse(payload))
            return
        with turns.of(job_type.name) as is_free:
            if is_free:
                execute(task, settings, job_type.parse(payload))

    # How often a job is repeated is decided where its state is known.
    return app.task(run, name=job_type.name, bind=True, max_retries=None)


TASKS = [register(job_type) for job_type in ALL_JOBS]
