"""Why no answer can be written."""

from app.domain.queries.errors import ChatModelMissing
from app.errors import NotFound

__all__ = ["ChatModelMissing", "ModelNameUnknown"]


class ModelNameUnknown(NotFound):
    """No workspace and mode that the caller may use go by this name."""

    code = "model_not_found"
    title = "Model not found"
