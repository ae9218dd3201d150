"""A process killed within a merge, an undo or a split: nothing of it is there, or it is put back, and a retry completes."""

import json
import os
import subprocess
import sys
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from app.retrieval.entity_contract import ChangeRecord, MergeRequest
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.graph_store import ANSWERS
from app.retrieval.lightrag.graphs import graph_store
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.settings import Settings
from tests.retrieval.lightrag import killed_change
from tests.retrieval.lightrag.conftest import OURS_AND_AGE
from tests.retrieval.lightrag.doubles import Corpus, ignore
from tests.retrieval.lightrag.graph_rows import differences, graph_rows

pytestmark = OURS_AND_AGE

FIRST = ("Ann Reed met Annie Reed in Porto.", "Annie Reed works in Braga.")
SECOND = ("Ann Reed owns Orbit Works.", "Orbit Works is in Porto. Annie Reed knows Orbit Works.")
MERGE = MergeRequest(("Annie Reed",), "Ann Reed")
KINDS = ("entity", "relation")
CHANGE = "SELECT state, names FROM entity_changes WHERE id = :id"


def change_in_a_process(settings: Settings, corpus: Corpus, writes: int, **task: Any) -> UUID:
    """Killed before so many statements that write; the id that the change was to have."""
    ref, change = corpus.workspace.ref, uuid4()
    environment = os.environ | {
        "TRELLIS_DATABASE_URL": settings.database_url.get_secret_value(),
        "TRELLIS_ENGINE_DATABASE_URL": settings.engine_database_url.get_secret_value(),
        "TRELLIS_REDIS_URL": settings.redis_url.get_secret_value(),
        "TRELLIS_BLOB_URL": settings.blob_url,
        "TRELLIS_SCRATCH_DIR": str(settings.scratch_dir),
    }
    task |= {"tenant": str(ref.tenant_id), "workspace": str(ref.workspace_id), "number": ref.number}
    task |= {"store": ref.graph_store, "change": str(change), "writes": writes}
    command = [sys.executable, "-m", killed_change.__name__, json.dumps(task)]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert killed.returncode == -9, killed.stderr
    return change


async def settle(entities: GraphEntities, corpus: Corpus, change: UUID) -> str | None:
    """As a worker does: put back what is marked. The state in which the change was found."""
    async with corpus.database.tenant(corpus.tenant_id) as session:
        row = (await session.execute(text(CHANGE), {"id": change})).one_or_none()
    if row is None:
        return None
    if row.state == "writing":
        await entities.put_back(corpus.workspace, change, row.names, corpus.lease)
    return str(row.state)


def what_there_is(rows: dict[str, list[Any]]) -> object:
    """Entities and relations, what they are known from, and everything of ours."""
    keys = [sorted(row[0] for row in rows["nodes"]), sorted(row[:2] for row in rows["edges"])]
    behind = [sorted((row[0], sorted(json.loads(row[1]))) for row in rows[f"{kind}_chunks"]) for kind in KINDS]
    vectors = sorted(row[1] for row in rows["entity_vectors"]), sorted(row[1:3] for row in rows["relation_vectors"])
    # A merge renames what was said, twice if of both; deriving says it once.
    return keys, behind, vectors, set(rows["mentions"]), rows["aliases"], rows["edits"]


@pytest.fixture
async def ingested(index: GraphWriter, corpus: Corpus) -> Corpus:
    for texts in (FIRST, SECOND):
        version = await corpus.add(*texts)
        await index.extract(corpus.workspace, version, ignore)
        await index.insert(corpus.workspace, version, corpus.lease)
        await corpus.trust(version)
    return corpus


async def test_of_a_killed_merge_of_a_document_nothing_is_left_after_its_removal(
    index: GraphWriter, pool: EngineDatabase, settings: Settings, ingested: Corpus
) -> None:
    corpus, is_atomic = ingested, ingested.workspace.ref.graph_store == "table"
    before = await graph_rows(pool, corpus)
    texts = ("Ann Reed sold Orbit Works.", "Cleo Marsh met Ann Reed in Faro.")
    version = await corpus.add(*texts)
    await index.extract(corpus.workspace, version, ignore)
    insert = [str(version.document_id), str(version.version_id), texts]
    for writes in (1, 8) if is_atomic else (8, 20):
        change_in_a_process(settings, corpus, writes, insert=insert)
        left = differences(before, await graph_rows(pool, corpus))
        assert bool(left) is not is_atomic
        await index.remove(corpus.workspace, version.version_id, corpus.lease, keep_answers=True)
        assert what_there_is(await graph_rows(pool, corpus)) == what_there_is(before)
        store = graph_store(pool, corpus.workspace.ref, corpus.workspace.vector_suffix)
        with inside(corpus.workspace.ref):
            assert set(await store.traces(str(version.version_id))) <= {ANSWERS}
    await index.insert(corpus.workspace, version, corpus.lease)
    assert "Cleo Marsh" in str(await graph_rows(pool, corpus))


@pytest.mark.parametrize("kind", ["merge", "undo", "split"])
async def test_a_killed_change_leaves_nothing_and_a_retry_completes(
    entities: GraphEntities, pool: EngineDatabase, settings: Settings, ingested: Corpus, kind: str
) -> None:
    corpus, is_atomic = ingested, ingested.workspace.ref.graph_store == "table"
    merged, untouched = ChangeRecord(), await graph_rows(pool, corpus)
    if kind == "undo":
        await entities.merge(corpus.workspace, MERGE, corpus.lease, record=merged)
    ((version, _), *_) = (await entities.get(corpus.workspace, "Annie Reed")).chunks
    tasks: dict[str, dict[str, object]] = {
        "merge": {"merge": ["Annie Reed", "Ann Reed"]},
        "undo": {"undo": str(merged.id)},
        "split": {"split": ["Annie Reed", str(version), "Annie R."]},
    }
    before, found = await graph_rows(pool, corpus), []
    for writes in (1, 6) if is_atomic else (3, 8):
        change = change_in_a_process(settings, corpus, writes, **tasks[kind])
        found.append(await settle(entities, corpus, change))
        after = await graph_rows(pool, corpus)
        if is_atomic or kind != "undo":
            assert differences(before, after) == {}, writes
        else:
            # What was merged is derived from its documents under its name, and not merged once more.
            assert what_there_is(after) == what_there_is(before)
    assert found == ([None, None] if is_atomic else ["writing", "writing"])
    if kind == "merge":
        assert (await entities.merge(corpus.workspace, MERGE, corpus.lease)).name == "Ann Reed"
    elif kind == "undo":
        assert "Annie Reed" in await entities.undo(corpus.workspace, merged.id, corpus.lease)
        assert differences(untouched, await graph_rows(pool, corpus)) == {}
    else:
        parts = {"Annie R.": [(version, 0)]}
        (part,) = await entities.split(corpus.workspace, "Annie Reed", parts, corpus.lease)
        assert part.name == "Annie R."
