"""Why no answer can be written."""

from app.domain.queries.errors import ChatModelMissing
from app.errors import NotFound, TimedOut

__all__ = ["AnswerTimedOut", "ChatModelMissing", "ModelNameUnknown"]


class ModelNameUnknown(NotFound):
    """No workspace and mode that the caller may use go by this name."""

    code = "model_not_found"
    title = "Model not found"


class AnswerTimedOut(TimedOut):
    """The chat model was still writing when its time was over. What it has said until then is booked."""

    code = "answer_timeout"
    title = "The answer took too long"
