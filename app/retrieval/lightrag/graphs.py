"""Which statements read a workspace's graph: those on the two plain tables, or those that ask Apache AGE."""

from collections.abc import Collection
from importlib.util import find_spec
from uuid import UUID

from app.retrieval.contract import GraphStoreName, WorkspaceRef
from app.retrieval.errors import GraphStoreUnavailable
from app.retrieval.lightrag.age.rows import AgeRows
from app.retrieval.lightrag.age.stores import AgeGraphReads, AgeGraphStore, AgeReader, AgeSupportStore
from app.retrieval.lightrag.graph_reads_store import GraphReads
from app.retrieval.lightrag.graph_store import GraphStore, obstacle_to_age
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.reads import Reads
from app.retrieval.lightrag.rows_store import Rows, TableRows
from app.retrieval.lightrag.search_store import GraphReader
from app.retrieval.lightrag.support_store import SupportStore

# What the database's function says stands in the way, for people.
_OBSTACLES = {
    "extension_missing": "the database has no extension age",
    "version_unsupported": "Apache AGE 1.8 and newer cannot be used with this version of LightRAG",
    "not_prepared": "the database is not prepared for it (trellis db bootstrap --age)",
    "not_loaded": "the server does not load it at its start (shared_preload_libraries)",
}


def graph_store(database: EngineDatabase, ref: WorkspaceRef, suffix: str) -> GraphStore:
    if ref.graph_store == "age":
        return AgeGraphStore(database, ref, suffix)
    return GraphStore(database, ref.engine_name, suffix)


def graph_reader(
    database: Reads, ref: WorkspaceRef, suffix: str, *, allowed: Collection[UUID] | None = None
) -> GraphReader:
    kind = AgeReader if ref.graph_store == "age" else GraphReader
    return kind(database, ref, suffix, allowed=allowed)


def support_store(
    database: Reads, ref: WorkspaceRef, *, include_partial: bool = False, allowed: Collection[UUID] | None = None
) -> SupportStore:
    kind = AgeSupportStore if ref.graph_store == "age" else SupportStore
    return kind(database, ref, include_partial=include_partial, allowed=allowed)


def graph_reads(database: Reads, ref: WorkspaceRef, states: Collection[str]) -> GraphReads:
    kind = AgeGraphReads if ref.graph_store == "age" else GraphReads
    return kind(database, ref, states)


def graph_rows(database: EngineDatabase, ref: WorkspaceRef) -> Rows:
    return AgeRows(database, ref) if ref.graph_store == "age" else TableRows(database, ref)


class Stores:
    """`GraphStores` of this installation."""

    def __init__(self, database: EngineDatabase) -> None:
        self._database = database

    async def require_available(self, name: GraphStoreName) -> None:
        if name != "age":
            return
        if find_spec("age") is None:
            raise GraphStoreUnavailable("graphs in Apache AGE need the extra `age` of this package", store=name)
        obstacle = await obstacle_to_age(self._database)
        if obstacle is not None:
            sentence = f"Apache AGE cannot be used here: {_OBSTACLES.get(obstacle, obstacle)}"
            raise GraphStoreUnavailable(sentence, store=name)
