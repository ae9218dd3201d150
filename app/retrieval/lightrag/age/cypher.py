"""Runs openCypher on the graph of one workspace, as that graph's own role; texts travel as parameters only."""

import json
from collections.abc import Sequence
from typing import Any

from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.pool import in_graph
from app.retrieval.lightrag.reads import Reads

_NAME = "ag_catalog.agtype_access_operator(VARIADIC ARRAY[{row}.properties, '\"entity_id\"'::ag_catalog.agtype])"
_NAMES = {f"name_of_{row}": _NAME.format(row=row) for row in "ab"}
_IS_OPEN = "SELECT to_regnamespace(graph_name($1)) IS NOT NULL AS is_open"
# More at once would make statements that are planned for longer than they run.
BATCH = 500


class AgeGraph:
    """The graph that holds a workspace's entities. Runs inside the workspace's fence; a graph not made yet is empty."""

    def __init__(self, database: Reads, ref: WorkspaceRef) -> None:
        self._database = database
        self._ref = ref
        self._is_open = False
        self.name = graph_name(ref)

    async def is_open(self) -> bool:
        if not self._is_open:
            self._is_open = (await self._database.fetch(_IS_OPEN, self._ref.workspace_id))[0]["is_open"]
        return self._is_open

    async def open(self) -> None:
        """Make the graph, if it is not there; runs DDL, so only jobs that write call it."""
        if not await self.is_open():
            await self._database.fetch("SELECT open_graph($1)", self._ref.workspace_id)

    async def drop(self) -> bool:
        """Give the graph up, unless the workspace still lives in it; whether it was there and is gone."""
        self._is_open = False
        return bool((await self._database.fetch("SELECT drop_graph($1) AS gone", self._ref.workspace_id))[0]["gone"])

    async def texts(self, query: str, columns: Sequence[str], **parameters: Any) -> list[dict[str, Any]]:
        """Rows of a query whose columns are texts, numbers as texts too."""
        return await self._run(query, columns, "text", parameters)

    async def values(self, query: str, columns: Sequence[str], **parameters: Any) -> list[dict[str, Any]]:
        """Rows of a query as `agtype` writes them, for `agtype.read`."""
        return await self._run(query, columns, "agtype", parameters)

    async def sql(self, statement: str, *arguments: Any) -> list[dict[str, Any]]:
        """Rows of a statement on the graph's own tables, `{graph}.base` and `{graph}."DIRECTED"`.

        `{name_of_a}` and `{name_of_b}` are the names of rows `a` and `b` in the form that the index has.
        """
        if not await self.is_open():
            return []
        with in_graph(self.name):
            rows = await self._database.fetch(statement.format(graph=self.name, **_NAMES), *arguments)
        return [dict(row) for row in rows]

    async def _run(
        self, query: str, columns: Sequence[str], kind: str, parameters: dict[str, Any]
    ) -> list[dict[str, Any]]:
        # Both are ours: a name made of an id, and a query of this package.
        shape = ", ".join(f"{column} {kind}" for column in columns)
        statement = f"SELECT * FROM cypher('{{graph}}', $cypher${_doubled(query)}$cypher$, $1) AS ({shape})"  # noqa: S608
        return await self.sql(statement, json.dumps(parameters, ensure_ascii=False))


def graph_name(ref: WorkspaceRef) -> str:
    """As LightRAG's storage calls it, and the database's function of this name."""
    return f"{ref.engine_name}_chunk_entity_relation"


def _doubled(query: str) -> str:
    """Cypher's braces, kept from `str.format`."""
    return query.replace("{", "{{").replace("}", "}}")
