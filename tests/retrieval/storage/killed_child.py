"""Run as a process of its own: inserts one document and is killed before a given statement of the commit.

Arguments, as one JSON object: engine_url, folder, tenant, workspace, statement (-1: is not killed). Prints how many
extraction calls were made.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

from app.db.base import TenantId, WorkspaceId
from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.pool import open_engine_database
from app.retrieval.lightrag.storage import commit as commit_module
from app.settings import Settings
from tests.retrieval.storage.harness import close_engine, make_documents, open_engine


async def main(task: dict[str, Any]) -> None:
    settings = Settings(engine_database_url=task["engine_url"], engine_pool_size=4)
    database = await open_engine_database(settings)
    ref = WorkspaceRef(TenantId(UUID(task["tenant"])), WorkspaceId(UUID(task["workspace"])), 1)
    engine = await open_engine(ref, Path(task["folder"]), is_unit=True)
    engine.chunks.update(make_documents(2))
    run = commit_module.execute
    statements = 0

    async def execute(connection: Any, statement: Any) -> Any:
        nonlocal statements
        if statements == task["statement"]:
            os.kill(os.getpid(), signal.SIGKILL)
        statements += 1
        return await run(connection, statement)

    commit_module.execute = execute
    await engine.insert(list(engine.chunks)[-1])
    await close_engine(engine)
    await database.close()
    sys.stdout.write(str(engine.calls.count["extract"]))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
