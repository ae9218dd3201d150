"""Run as a process of its own: changes entities and is killed before the engine's nth statement that writes.

Arguments, as one JSON object: tenant, workspace, number, store, change (the id that it gets), merge (source, target),
undo (a change), split (name, version, part) or insert (document, version, texts), writes (before how many it is killed; -1: never).
"""

import asyncio
import json
import os
import re
import signal
import sys
from typing import Any
from uuid import UUID

from app.bootstrap import open_container
from app.db.base import TenantId, WorkspaceId
from app.retrieval.contract import ChunkText, VersionChunks
from app.retrieval.entity_contract import ChangeRecord, MergeRequest
from app.retrieval.lightrag.pool import EngineConnection
from app.settings import Settings
from tests.retrieval.lightrag.doubles import Corpus

WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE|CREATE|SET)\b")
CALLS = ("execute", "executemany", "fetch", "fetchrow")


def deadly(writes: int) -> None:
    done = 0

    def counted(method: Any) -> Any:
        async def run(self: Any, statement: str, *arguments: Any, **options: Any) -> Any:
            nonlocal done
            if WRITES.search(statement) and "set_config" not in statement:
                if done == writes:
                    os.kill(os.getpid(), signal.SIGKILL)
                done += 1
            return await method(self, statement, *arguments, **options)

        return run

    for name in CALLS:
        setattr(EngineConnection, name, counted(getattr(EngineConnection, name)))


async def main(task: dict[str, Any]) -> None:
    settings = Settings()
    async with open_container(settings) as container:
        place = TenantId(UUID(task["tenant"])), WorkspaceId(UUID(task["workspace"]))
        corpus = Corpus.of(container.database, *place, task["number"], task["store"])
        deadly(task["writes"])
        entities, record = container.graph.entities, ChangeRecord(UUID(task["change"]))
        if "merge" in task:
            source, target = task["merge"]
            await entities.merge(corpus.workspace, MergeRequest((source,), target), corpus.lease, record=record)
        elif "undo" in task:
            await entities.undo(corpus.workspace, UUID(task["undo"]), corpus.lease, record=record)
        elif "insert" in task:
            document, version, texts = task["insert"]
            chunks = tuple(ChunkText(n, text, len(text) // 4 + 1) for n, text in enumerate(texts))
            inserted = VersionChunks(UUID(version), UUID(document), chunks)
            await container.graph.index.insert(corpus.workspace, inserted, corpus.lease)
        else:
            name, version, to = task["split"]
            parts = {to: [(UUID(version), 0)]}
            await entities.split(corpus.workspace, name, parts, corpus.lease, record=record)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
