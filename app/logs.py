"""Structured logging of every process. Ids and counts go into log lines; document text, queries and secrets never do."""

import asyncio
import logging
import sys
import traceback
from pathlib import PurePath
from typing import Any

import structlog

from app.db.session import is_unavailable
from app.settings import Settings

logger = structlog.stdlib.get_logger(__name__)


def configure_logging(settings: Settings) -> None:
    """Send structlog and the standard library's loggers to stderr in one format; call once at the start of a process."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if settings.log_format == "json" else structlog.dev.ConsoleRenderer()
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level)
    # The server came first and set up handlers of its own; its access lines hold paths, and so names from documents.
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True
    logging.getLogger("uvicorn.access").disabled = True
    # Their debug and info lines quote what is sent to models and stored, which no log of ours may hold.
    for name in ("lightrag", "httpx", "httpx2", "httpcore", "httpcore2", "openai", "sqlalchemy.engine", "app.db.pools"):
        logging.getLogger(name).setLevel(logging.WARNING)


def where_raised(error: BaseException) -> dict[str, object]:
    """The type of an exception and our frames of its stack with the innermost, as `file:line function`. Its message is
    left out, for it may quote content."""
    frames = traceback.extract_tb(error.__traceback__)
    shown = [frame for frame in frames if "site-packages" not in frame.filename or frame is frames[-1]]
    return {
        "error_type": f"{type(error).__module__}.{type(error).__qualname__}",
        "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in shown],
    }


def log_stray_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An event loop's exception handler: an error that nobody awaited is told by its place, for asyncio's own line would
    quote its message."""
    error = context.get("exception")
    facts = where_raised(error) if isinstance(error, BaseException) else {}
    if isinstance(error, BaseException) and is_unavailable(error) and _is_of_engine(context.get("future")):
        # Of the engine's tasks for chunks whose document was called off when the database went away: no fault.
        logger.warning("stray_outage", context=str(context.get("message", "")), **facts)
        return
    logger.error("stray_error", context=str(context.get("message", "")), **facts)


def _is_of_engine(future: object) -> bool:
    """Whether it is a task that LightRAG made and left behind; whoever else loses an error has a fault."""
    code = getattr(future.get_coro(), "cr_code", None) if isinstance(future, asyncio.Task) else None
    return code is not None and "-packages/lightrag/" in PurePath(code.co_filename).as_posix()
