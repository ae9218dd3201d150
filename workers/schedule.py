"""What beat sends, and when. Several beats do no harm: sweeping is safe to repeat."""

from typing import Any

from app.settings import Settings

SWEEP = "upkeep.sweep"
# Of its own, so that a long backlog of documents does not keep the sweeper from looking at it.
SWEEP_QUEUE = "upkeep"


def beat_schedule(settings: Settings) -> dict[str, dict[str, Any]]:
    """The sweeper's clock. A sweep that no worker took before the next one is due is dropped."""
    return {
        "sweep": {
            "task": SWEEP,
            "schedule": settings.sweep_interval_seconds,
            "options": {"queue": SWEEP_QUEUE, "expires": settings.sweep_interval_seconds},
        }
    }
