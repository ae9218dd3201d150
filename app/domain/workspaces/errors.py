"""Why something cannot be done with a workspace."""

from uuid import UUID

from app.errors import Conflict, Invalid, NotFound


class WorkspaceNotFound(NotFound):
    """There is no such workspace, or it is not yours."""

    code = "workspace_not_found"
    title = "Workspace not found"

    @classmethod
    def of(cls, workspace_id: UUID) -> "WorkspaceNotFound":
        return cls(f"There is no workspace {workspace_id}.", workspace_id=workspace_id)


class WorkspaceExists(Conflict):
    """The tenant has a workspace of this name already."""

    code = "workspace_exists"
    title = "A workspace of this name exists"


class WorkspaceDeleting(Conflict):
    """The workspace is being deleted and takes no more work."""

    code = "workspace_deleting"
    title = "The workspace is being deleted"


class UnknownModel(Invalid):
    """No model profile has this name and role."""

    code = "unknown_model"
    title = "Unknown model"


class ModeNeedsEngine(Invalid):
    """The mode belongs to an engine that the workspace does not have."""

    code = "mode_needs_engine"
    title = "The workspace does not have the engine of this mode"
