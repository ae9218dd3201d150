"""Celery's consumer, mended so that a worker outlives its broker."""

from collections.abc import Callable
from typing import Any

from celery.utils.log import get_logger
from celery.worker.consumer import Consumer

logger = get_logger(__name__)


class LastingConsumer(Consumer):  # type: ignore[misc]
    """Connects again whenever the broker went away, jobs under way or not.

    kombu (5.7) still uses a lost connection after having taken it apart, to send messages of running jobs back and to
    acknowledge those of jobs that end later. That AttributeError would end the process. The messages may be lost: the
    claims in Postgres and the sweeper do not need them.
    """

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Let go of the lost connection."""
        try:
            super().on_connection_error_after_connected(exc)
        except AttributeError as error:
            logger.warning("the lost connection to the broker was not closed in order (%s)", error)
            self.connection = None

    def call_soon_ack(self, p: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Have the loop tell the broker what became of a message, if its connection is still there by then."""

        def tell(*arguments: Any, **options: Any) -> None:
            try:
                p(*arguments, **options)
            except AttributeError as error:
                logger.warning("a message outlived its connection to the broker (%s)", error)

        return super().call_soon_ack(tell, *args, **kwargs)
