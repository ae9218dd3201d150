"""LightRAG's log, made safe: its lines hold queries, names, whole rows and keys (facts F24), so only their origin passes."""

import logging
import sys

ENGINE_LOGGERS = ("lightrag", "lightrag.multimodal_context", "nano-vectordb")


class OriginOnly(logging.Filter):
    """Replaces every message by where it was logged and the type of the error at hand, neither of which is content."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[0] if record.exc_info else sys.exc_info()[0]
        record.msg = "graph engine: %s in %s.%s:%d"
        record.args = (error.__name__ if error else "message", record.module, record.funcName, record.lineno)
        record.exc_info = record.exc_text = record.stack_info = None
        return True


def quieten_engine() -> None:
    """Take LightRAG's own handlers away and let warnings, stripped of content, reach the process's log."""
    for name in ENGINE_LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.WARNING)
        if not any(isinstance(known, OriginOnly) for known in logger.filters):
            logger.addFilter(OriginOnly())
