"""The pool of LightRAG instances: bounded, closed without leftovers, and deaf to the environment."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import lightrag
import pytest
from lightrag.kg import shared_storage

from app.db.vector_tables import DimensionMismatch
from app.retrieval.contract import SearchRequest
from app.retrieval.lightrag.graph_store import EngineTablesMissing
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.search import GraphSearch
from app.retrieval.lightrag.stores import UNITS, Writes
from app.settings import Settings
from tests.factories import Tenancy
from tests.retrieval.lightrag.conftest import make_corpus
from tests.retrieval.lightrag.doubles import Corpus, ignore

ORBIT = "Ada Marsh founded Orbit Works in Lisbon."

# What another environment must not change; read in a fresh process, for LightRAG reads its defaults when imported.
DUMP = """
import dataclasses, json, sys, asyncio
from uuid import UUID
from pathlib import Path
from app.retrieval.lightrag.instances import _build
from app.retrieval.lightrag.stores import UNITS, register
from app.settings import Settings
from tests.retrieval.lightrag.doubles import Corpus
register(UNITS)
corpus = Corpus.of(None, UUID(int=1), UUID(int=2), 3)
rag = _build(corpus.workspace, Settings(scratch_dir=Path(sys.argv[1])), UNITS, None).rag
found = {f.name: repr(getattr(rag, f.name)) for f in dataclasses.fields(rag) if hasattr(rag, f.name)}
found["addon_params"] = repr(dict(rag.addon_params))
print(json.dumps({name: value for name, value in found.items() if " at 0x" not in value}))
"""


@pytest.fixture
async def small(settings: Settings, pool: EngineDatabase) -> AsyncIterator[InstancePool]:
    """A pool of two instances."""
    instances = InstancePool(settings.model_copy(update={"engine_instances": 2}), pool, UNITS)
    yield instances
    await instances.close()


async def test_the_pool_keeps_the_last_used_and_never_closes_one_in_use(small: InstancePool, tenancy: Tenancy) -> None:
    first, second, third = [await make_corpus(tenancy) for _ in range(3)]
    async with small.use(first.workspace) as kept:
        async with small.use(second.workspace), small.use(third.workspace):
            assert small.size == 3
        assert small.size == 2
        assert await kept.rag.full_docs.get_by_id("anything") is None
        async with small.use(first.workspace) as again:
            assert again is kept


async def test_a_closed_instance_leaves_no_task_and_no_global_state(
    small: InstancePool, pool: EngineDatabase, corpus: Corpus, database: object
) -> None:
    before = asyncio.all_tasks()
    index = GraphWriter(pool, small, Writes(UNITS))
    version = await corpus.add(ORBIT)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    search = GraphSearch(pool, corpus.database, small)
    assert (await search.search(corpus.workspace, SearchRequest("Ada Marsh", "mix"))).passages
    await small.close()
    assert asyncio.all_tasks() - before == set()
    for store in (shared_storage._shared_dicts, shared_storage._pipeline_ingress_local):
        assert [key for key in store if key.startswith(corpus.workspace.ref.engine_name)] == []
    assert (await pool.fetch("SELECT 1 AS one"))[0]["one"] == 1


async def test_another_profile_is_another_instance(small: InstancePool, corpus: Corpus) -> None:
    other = replace(corpus.workspace, profile=replace(corpus.workspace.profile, gleaning=1))
    async with small.use(corpus.workspace) as one, small.use(other) as two:
        assert one.rag is not two.rag
        assert two.rag.entity_extract_max_gleaning == 1


async def test_an_embedding_without_tables_is_refused(small: InstancePool, corpus: Corpus) -> None:
    with pytest.raises(EngineTablesMissing):
        async with small.use(replace(corpus.workspace, vector_suffix="nowhere_32d")):
            pass


async def test_an_embedding_of_another_length_is_refused_with_both_numbers(small: InstancePool, corpus: Corpus) -> None:
    corpus.embedding.dimension = 48
    with pytest.raises(DimensionMismatch, match=r"32 .* 48"):
        async with small.use(corpus.workspace):
            pass


async def test_a_profile_with_braces_and_examples_can_be_extracted_with(
    pool: EngineDatabase, small: InstancePool, tenancy: Tenancy
) -> None:
    corpus = await make_corpus(
        tenancy,
        entity_types=(("machine", "a {thing} that moves"), ("person", "")),
        extraction_examples=("{'a': 1}",),
        extraction_language="Português",
    )
    version = await corpus.add(ORBIT)
    await GraphWriter(pool, small, Writes(UNITS)).extract(corpus.workspace, version, ignore)
    assert len(corpus.chat.asked) == 1


def dump(folder: Path, extra: dict[str, str]) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", DUMP, str(folder)],
        env={"PATH": os.environ["PATH"], **extra},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_no_environment_variable_changes_an_instance(tmp_path: Path) -> None:
    folder = Path(lightrag.__file__).parent
    sources = [*folder.glob("*.py"), folder / "parser" / "routing.py"]
    variables = {name for source in sources for name in re.findall(r'"([A-Z][A-Z0-9_]{3,})"', source.read_text())}
    hostile = dict.fromkeys(variables - {"ENTITY_TYPES", "WORKSPACE"}, "7")
    assert "MAX_GLEANING" in hostile
    assert dump(tmp_path, hostile) == dump(tmp_path, {})
