"""What a database server counts: statements by kind (pg_stat_statements, which the wheel ships) and bytes by table.

A row of an `executemany` is an execution of its own and counts as a statement.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg

from app.devstack.postgres import EmbeddedPostgres

Result = TypeVar("Result")

# The first kind whose pattern is found in a statement is its kind.
KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("pool resets", r"pg_advisory_unlock_all|^\s*(close all|unlisten|reset all|discard)"),
        ("begin, commit, set", r"^\s*(begin|commit|rollback|start|savepoint|release|set|show|select set_config|;)"),
        ("extraction cache", r"lightrag_llm_cache"),
        ("engine", r"lightrag_|\bmentions\b"),
        ("other", ""),
    )
)
_COUNTED = """
SELECT s.query, sum(s.calls)::bigint AS calls, sum(s.total_exec_time) AS ms
  FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
 WHERE d.datname = current_database() AND s.query NOT LIKE '%pg_stat_statements%'
 GROUP BY 1 ORDER BY 2 DESC
"""
_SIZES = """
SELECT c.relname AS name, pg_total_relation_size(c.oid) AS bytes
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = 'public' AND c.relkind = 'r' ORDER BY 2 DESC
"""


@dataclass(frozen=True)
class Counted:
    """Statements since the last reset: how often by kind, and each with its count and the server's milliseconds."""

    by_kind: Counter[str]
    each: tuple[tuple[str, int, float], ...]

    @property
    def total(self) -> int:
        return self.by_kind.total()

    @property
    def slowest(self) -> list[tuple[str, int, float]]:
        return sorted(self.each, key=lambda row: -row[2])

    @property
    def most_frequent(self) -> list[tuple[str, int, float]]:
        return sorted(self.each, key=lambda row: -row[1])


class StatementCounter:
    """Counts on one database of an embedded server, as its administrator."""

    def __init__(self, server: EmbeddedPostgres, database: str) -> None:
        self._url = server.url(database)

    @staticmethod
    def preload(server: EmbeddedPostgres) -> None:
        """Before the server starts: have it count."""
        server.settings = server.settings | {
            "shared_preload_libraries": "pg_stat_statements",
            "pg_stat_statements.max": "10000",
        }

    def reset(self) -> None:
        self._run(_reset)

    def count(self) -> Counted:
        rows = self._run(lambda connection: connection.fetch(_COUNTED))
        by_kind: Counter[str] = Counter()
        for row in rows:
            by_kind[kind_of(row["query"])] += row["calls"]
        return Counted(by_kind, tuple((" ".join(row["query"].split()), row["calls"], row["ms"]) for row in rows))

    def table_bytes(self) -> dict[str, int]:
        """Bytes of each table with its indexes and long values, largest first."""
        rows = self._run(lambda connection: connection.fetch(_SIZES))
        return {row["name"]: row["bytes"] for row in rows}

    def fetch(self, statement: str) -> list[Any]:
        return list(self._run(lambda connection: connection.fetch(statement)))

    def _run(self, work: Callable[[asyncpg.Connection], Awaitable[Result]]) -> Result:
        return asyncio.run(self._connected(work))

    async def _connected(self, work: Callable[[asyncpg.Connection], Awaitable[Result]]) -> Result:
        connection = await asyncpg.connect(self._url)
        try:
            return await work(connection)
        finally:
            await connection.close()


def kind_of(statement: str) -> str:
    return next(kind for kind, pattern in KINDS if pattern.search(statement))


async def _reset(connection: asyncpg.Connection) -> None:
    await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    await connection.execute("SELECT pg_stat_statements_reset()")
