"""Celery's consumer, mended so that a worker outlives its broker."""

from collections.abc import Callable
from typing import Any

import structlog
from celery.worker.consumer import Consumer

logger = structlog.stdlib.get_logger(__name__)


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
            logger.warning("broker_connection_not_closed", error_type=type(error).__name__)
            self.connection = None

    def call_soon_ack(self, p: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Have the loop tell the broker what became of a message, if its connection is still there by then."""

        def tell(*arguments: Any, **options: Any) -> None:
            try:
                p(*arguments, **options)
            except AttributeError as error:
                logger.warning("message_outlived_connection", error_type=type(error).__name__)

        return super().call_soon_ack(tell, *args, **kwargs)
