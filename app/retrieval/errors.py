"""Errors that engines raise and domain code understands; `contract` hands them on with the protocols that name them."""

from app.errors import Conflict, Invalid, NotFound, Unavailable


class EntityNotFound(NotFound):
    code = "entity_not_found"
    title = "Entity not found"


class InvalidMerge(Invalid):
    code = "invalid_merge"
    title = "These entities cannot be merged"


class UnknownMode(Invalid):
    code = "unknown_mode"
    title = "Unknown mode"


class EngineOff(Conflict):
    code = "engine_off"
    title = "The workspace does not have this engine"


class GraphWriteFailed(Unavailable):
    """The engine did not finish a write; what it left is told by the caller's state machine, not by this error."""

    code = "graph_write_failed"
    title = "The graph could not be written"


class LeaseLost(Unavailable):
    """The holder of the workspace's lease was too slow to keep it; somebody else may write now."""

    code = "lease_lost"
    title = "The workspace's lease is lost"


class WorkspaceBusy(Unavailable):
    code = "workspace_busy"
    title = "Another write holds the workspace"


class AliasNotFound(NotFound):
    code = "alias_not_found"
    title = "Alias not found"


class InvalidAlias(Invalid):
    code = "invalid_alias"
    title = "This name cannot be an alias"


class AliasTaken(Conflict):
    """The name is an entity, or an alias of another one."""

    code = "alias_taken"
    title = "The name means something already"


class ChangeNotFound(NotFound):
    code = "change_not_found"
    title = "Change not found"


class UndoBlocked(Conflict):
    """The facts name what stands in the way: later changes, edits, or chunks whose answers are gone."""

    code = "undo_blocked"
    title = "The change cannot be undone"


class RemovedWithDocuments(Conflict):
    """What a change was about went with the last document that spoke of it."""

    code = "removed_with_documents"
    title = "The change was removed with its documents"


class GraphStoreUnavailable(Conflict):
    """This installation cannot keep graphs in the store that was asked for."""

    code = "graph_store_unavailable"
    title = "The graph store is not available"


class GraphStoreChanged(Unavailable):
    """The workspace's graph moved while the operation was on its way."""

    code = "graph_store_changed"
    title = "The graph has moved"


class EntityExists(Conflict):
    code = "entity_exists"
    title = "There is an entity of that name"


class InvalidEntity(Invalid):
    code = "invalid_entity"
    title = "The graph cannot keep this"


class RelationNotFound(NotFound):
    code = "relation_not_found"
    title = "Relation not found"


class RelationExists(Conflict):
    code = "relation_exists"
    title = "These entities are related already"
