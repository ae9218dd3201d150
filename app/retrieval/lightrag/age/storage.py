"""LightRAG's graph storage on Apache AGE, left as `open_graph` made it: no DDL, and no graph that is made by asking for it."""

from typing import Any

from lightrag.kg.postgres_impl import ClientManager, PGGraphStorage
from lightrag.kg.shared_storage import get_data_init_lock


class AgeGraphStorage(PGGraphStorage):  # type: ignore[misc]
    """The base class makes extension, graph and eleven indexes whenever an instance is opened (facts F15).

    Its statements run as the graph's own role, into which the pool puts the connection (`EngineDatabase`).
    """

    db: Any

    async def initialize(self) -> None:
        async with get_data_init_lock():
            if self.db is None:
                self.db = await ClientManager.get_client(self.global_config.get("vector_storage"))
            self.graph_name = f"{self.workspace}_{self.namespace}"
