"""A process that is killed in the middle of a commit leaves nothing but the answers it had paid for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.db.provision import DatabaseUrls
from tests.retrieval.storage import killed_child
from tests.retrieval.storage.conftest import OpenEngine
from tests.retrieval.storage.harness import TABLES, Engine, make_documents, table_rows

UNIT_TABLES = tuple(table for table in TABLES if table != "lightrag_llm_cache")
NEVER = -1


@pytest.mark.parametrize("statement", [0, 5, 11])
async def test_killed_insert_leaves_only_answers(
    statement: int, open_one: OpenEngine, urls: DatabaseUrls, tmp_path: Path
) -> None:
    engine = await open_one(is_unit=True)
    engine.chunks.update(make_documents(2))
    first, last = engine.chunks
    await engine.insert(first)
    before = await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES)

    killed = _insert_last(engine, urls, tmp_path, statement)
    assert killed.returncode == -9, killed.stderr
    assert await table_rows(urls.owner, engine.ref.engine_name, UNIT_TABLES) == before

    retried = _insert_last(engine, urls, tmp_path, NEVER)
    assert (retried.returncode, retried.stdout) == (0, "0"), retried.stderr
    assert str(last) in str(await table_rows(urls.owner, engine.ref.engine_name, ("lightrag_doc_status",)))


def _insert_last(
    engine: Engine, urls: DatabaseUrls, folder: Path, statement: int
) -> "subprocess.CompletedProcess[str]":
    task = {
        "engine_url": urls.engine,
        "folder": str(folder),
        "tenant": str(engine.ref.tenant_id),
        "workspace": str(engine.ref.workspace_id),
        "statement": statement,
    }
    command = [sys.executable, "-m", killed_child.__name__, json.dumps(task)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
