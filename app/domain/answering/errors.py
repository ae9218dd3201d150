"""Why no answer can be written."""

from app.errors import Conflict, NotFound


class ModelNameUnknown(NotFound):
    """No workspace and mode that the caller may use go by this name."""

    code = "model_not_found"
    title = "Model not found"


class ChatModelMissing(Conflict):
    """The workspace has no chat model, which is chosen when a workspace is created."""

    code = "chat_model_missing"
    title = "The workspace has no chat model"
