"""What beat sends, and when. Several beats do no harm: sweeping is safe to repeat."""

from typing import Any

from app.settings import Settings

SWEEP = "upkeep.sweep"
TEND_VECTORS = "upkeep.tend_vectors"
SWEEP_LEFTOVERS = "upkeep.sweep_leftovers"
EXPIRE = "upkeep.expire"
SEND_WEBHOOKS = "upkeep.send_webhooks"
# Counting all small workspaces' vectors is dearer than a sweep, and none is large from one minute to the next.
SWEEPS_PER_TENDING = 10
# Of its own, so that a long backlog of documents does not keep the sweeper from looking at it.
SWEEP_QUEUE = "upkeep"


def beat_schedule(settings: Settings) -> dict[str, dict[str, Any]]:
    """The sweeper's clock. A sweep that no worker took before the next one is due is dropped."""
    intervals = {
        SWEEP: settings.sweep_interval_seconds,
        TEND_VECTORS: settings.sweep_interval_seconds * SWEEPS_PER_TENDING,
        SWEEP_LEFTOVERS: settings.leftover_interval_seconds,
        SEND_WEBHOOKS: settings.webhook_interval_seconds,
        EXPIRE: settings.sweep_interval_seconds * SWEEPS_PER_TENDING,
    }
    return {
        task: {"task": task, "schedule": seconds, "options": {"queue": SWEEP_QUEUE, "expires": seconds}}
        for task, seconds in intervals.items()
    }
