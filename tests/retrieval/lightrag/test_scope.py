"""Nothing that a cut-off operation has started goes on: no model is asked, and LightRAG's own storages take no row."""

import asyncio

import pytest

from app.providers.contract import Purpose
from app.retrieval.contract import GraphStoreName, VersionChunks
from app.retrieval.lightrag import graphs
from app.retrieval.lightrag.graph_store import ANSWERS
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase, inside
from tests.factories import Tenancy
from tests.retrieval.lightrag.conftest import ALL_STORES, make_corpus
from tests.retrieval.lightrag.doubles import SUFFIX, Corpus, ignore
from tests.retrieval.lightrag.stored_graph import graph_nodes

pytestmark = ALL_STORES

TOWNS = [f"Town {letter}x" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]


async def extracted(index: GraphWriter, corpus: Corpus) -> VersionChunks:
    """A version whose merge has a summary to ask for of every town."""
    chunks = [" ".join(f"{town} was seen {n} times by Person {n}y." for town in TOWNS) for n in range(3)]
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    return version


async def cut_off_at_the_models(index: GraphWriter, corpus: Corpus, version: VersionChunks) -> None:
    """Cancel an insert while its summaries are asked for, and wait for all tasks that it leaves behind."""
    before = asyncio.all_tasks()
    corpus.chat.seconds = 600
    work = asyncio.create_task(index.insert(corpus.workspace, version, corpus.lease))
    async with asyncio.timeout(30):
        await corpus.chat.busy.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    corpus.chat.seconds = 0
    if left := asyncio.all_tasks() - before:
        await asyncio.wait(left, timeout=30)


async def test_summaries_that_are_under_way_are_called_off_and_no_other_is_asked_for(
    index: GraphWriter, tenancy: Tenancy, graph_store: GraphStoreName
) -> None:
    corpus = await make_corpus(tenancy, graph_store, summary_after_fragments=2)
    version = await extracted(index, corpus)
    await cut_off_at_the_models(index, corpus, version)
    assert corpus.chat.waiting == 0
    assert corpus.chat.cancelled == corpus.chat.count(Purpose.SUMMARY) < len(TOWNS)


async def test_what_a_cut_off_insert_left_can_be_removed_for_good(
    index: GraphWriter, pool: EngineDatabase, tenancy: Tenancy, graph_store: GraphStoreName
) -> None:
    corpus = await make_corpus(tenancy, graph_store, summary_after_fragments=2)
    version = await extracted(index, corpus)
    await cut_off_at_the_models(index, corpus, version)
    await index.remove(corpus.workspace, version.version_id, corpus.lease, keep_answers=True)
    with inside(corpus.workspace.ref):
        traces = await graphs.graph_store(pool, corpus.workspace.ref, SUFFIX).traces(str(version.version_id))
    assert set(traces) == {ANSWERS}
    assert await graph_nodes(pool, corpus.workspace.ref) == {}
    await index.insert(corpus.workspace, version, corpus.lease)
    assert corpus.chat.count(Purpose.EXTRACT) == len(version.chunks)
    assert len(await graph_nodes(pool, corpus.workspace.ref)) == len(TOWNS) + 1  # and the person
