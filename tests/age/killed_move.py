"""Run as a process of its own: moves a workspace's graph and is killed after so many writes to the new store.

Arguments, as one JSON object: tenant, workspace, to, writes.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any
from uuid import UUID

from app.bootstrap import open_container
from app.retrieval.lightrag.age.rows import AgeRows
from app.retrieval.lightrag.rows_store import TableRows
from app.settings import Settings


def deadly(rows: Any, writes: int) -> None:
    write = rows.write
    done = 0

    async def counted(self: Any, *arguments: Any) -> None:
        nonlocal done
        if done == writes:
            os.kill(os.getpid(), signal.SIGKILL)
        done += 1
        await write(self, *arguments)

    rows.write = counted


async def main(task: dict[str, Any]) -> None:
    for rows in (AgeRows, TableRows):
        deadly(rows, task["writes"])
    async with open_container(Settings()) as container:
        await container.graph_move().run(
            UUID(task["tenant"]), UUID(task["workspace"]), task["to"], lambda _: None, drain_seconds=0
        )


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
