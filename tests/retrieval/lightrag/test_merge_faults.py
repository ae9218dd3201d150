"""Merges and their undoing that break off at any statement, cross each other, or meet an insert: all or nothing."""

import asyncio
import random
from uuid import UUID, uuid4

import pytest

from app.providers.contract import ModelUnavailable
from app.retrieval.contract import GraphWriteFailed
from app.retrieval.entity_contract import (
    ChangeNotFound,
    ChangeRecord,
    EntityNotFound,
    InvalidMerge,
    MergeRequest,
)
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase, inside
from tests.retrieval.lightrag.doubles import Corpus, VersionChunks, ignore
from tests.retrieval.lightrag.graph_rows import differences, graph_rows
from tests.retrieval.storage.faults import Broken, before_statement

TEXTS = ("Ann Reed met Annie Reed in Porto.", "Annie Reed works in Braga. Ann Reed owns Orbit Works.")
REQUEST = MergeRequest(("Annie Reed",), "Ann Reed")


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str) -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    return version


async def history(pool: EngineDatabase, corpus: Corpus) -> list[tuple[str, str]]:
    with inside(corpus.workspace.ref):
        rows = await pool.fetch(
            "SELECT kind, state FROM entity_changes WHERE workspace_id = $1 ORDER BY number",
            corpus.workspace.ref.workspace_id,
        )
    return [(row["kind"], row["state"]) for row in rows]


async def count_statements(entities: GraphEntities, corpus: Corpus, change: UUID, what: str) -> None:
    """Do it once."""
    if what == "merge":
        await entities.merge(corpus.workspace, REQUEST, corpus.lease, record=ChangeRecord(change))
    else:
        await entities.undo(corpus.workspace, change, corpus.lease)


@pytest.mark.parametrize("what", ["merge", "undo"])
async def test_a_break_at_any_statement_leaves_all_as_it_was_and_a_repetition_succeeds(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus, what: str
) -> None:
    await ingest(index, corpus, *TEXTS)
    change = uuid4()
    if what == "undo":
        await entities.merge(corpus.workspace, REQUEST, corpus.lease, record=ChangeRecord(change))
    before, told = await graph_rows(pool, corpus), await history(pool, corpus)
    broken = 0
    while True:
        at = broken

        async def fault(number: int, at: int = at) -> None:
            if number == at:
                raise Broken

        with pytest.MonkeyPatch.context() as patch:
            seen = before_statement(patch, fault)
            try:
                await count_statements(entities, corpus, change, what)
                break
            except Broken:
                broken += 1
        assert len(seen) == at + 1
        assert differences(before, await graph_rows(pool, corpus)) == {}, at
        assert await history(pool, corpus) == told
    assert broken > 12
    assert await history(pool, corpus) == [
        *told[:-1],
        *({"merge": [("merge", "done")], "undo": [("merge", "undone"), ("undo", "done")]}[what]),
    ]


async def test_the_embedding_model_fails_once(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    """C26: an error and an unchanged graph, or the complete merge."""
    await ingest(index, corpus, *TEXTS)
    before = await graph_rows(pool, corpus)
    corpus.embedding.failing = 1
    with pytest.raises((ModelUnavailable, GraphWriteFailed)):
        await entities.merge(corpus.workspace, REQUEST, corpus.lease)
    assert differences(before, await graph_rows(pool, corpus)) == {}
    await entities.merge(corpus.workspace, REQUEST, corpus.lease)


async def test_cancelled_at_random_moments_it_is_whole_or_nothing(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, *TEXTS)
    before = await graph_rows(pool, corpus)
    moments = random.Random(7)
    for _ in range(12):
        change = uuid4()
        task = asyncio.ensure_future(
            entities.merge(corpus.workspace, REQUEST, corpus.lease, record=ChangeRecord(change))
        )
        for _ in range(moments.randrange(400)):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        names = [row[0] for row in (await graph_rows(pool, corpus))["nodes"]]
        if "Annie Reed" not in names:
            await entities.undo(corpus.workspace, change, corpus.lease)
        assert differences(before, await graph_rows(pool, corpus)) == {}


async def test_merges_that_cross_leave_one_entity(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, *TEXTS)
    there, back = MergeRequest(("Annie Reed",), "Ann Reed"), MergeRequest(("Ann Reed",), "Annie Reed")
    outcomes = await asyncio.gather(
        *(entities.merge(corpus.workspace, request, corpus.lease) for request in (there, back)), return_exceptions=True
    )
    assert all(not isinstance(found, BaseException) or type(found).__name__ in NAMED for found in outcomes), outcomes
    names = {row[0] for row in (await graph_rows(pool, corpus))["nodes"]}
    assert len(names & {"Ann Reed", "Annie Reed"}) == 1
    assert names - {"Ann Reed", "Annie Reed"} == {"Porto", "Braga", "Orbit Works"}


# One process writes a workspace once at a time; the second is told so, or finds the names changed.
NAMED = {"WorkspaceBusy", EntityNotFound.__name__, InvalidMerge.__name__}


async def test_a_merge_meets_an_insert_of_the_same_names(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, *TEXTS)
    version = await corpus.add("Annie Reed moved to Faro. Ann Reed followed Annie Reed.")
    await index.extract(corpus.workspace, version, ignore)

    async def insert() -> None:
        while True:
            try:
                return await index.insert(corpus.workspace, version, corpus.lease)
            except Exception as error:
                if type(error).__name__ != "WorkspaceBusy":
                    raise
            await asyncio.sleep(0)

    async def merge() -> None:
        while True:
            try:
                await entities.merge(corpus.workspace, REQUEST, corpus.lease)
                return
            except Exception as error:
                if type(error).__name__ != "WorkspaceBusy":
                    raise
            await asyncio.sleep(0)

    await asyncio.gather(insert(), merge())
    await corpus.trust(version)
    assert {row[0] for row in (await graph_rows(pool, corpus))["nodes"]} == {
        "Ann Reed", "Porto", "Braga", "Orbit Works", "Faro",
    }  # fmt: skip
    assert len((await entities.get(corpus.workspace, "Annie Reed")).chunks) == 3


async def test_hubs_of_a_thousand_relations_merge_and_part_again(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    def star(hub: str, first: int) -> str:
        rows = [f"entity<|#|>{hub}<|#|>Thing<|#|>{hub} is a hub."]
        rows += [f"relation<|#|>{hub}<|#|>Spoke {n}<|#|>holds<|#|>{hub} holds {n}." for n in range(first, first + 1000)]
        return "\n".join([*rows, "<|COMPLETE|>"])

    corpus.chat.answers["left wheel"] = star("Left Hub", 0)
    corpus.chat.answers["right wheel"] = star("Right Hub", 500)
    await ingest(index, corpus, "the left wheel.", "the right wheel.")
    before = await graph_rows(pool, corpus)
    assert await entities.count_relations(corpus.workspace, ["Left Hub", "right hub"]) == 2000
    change = uuid4()
    request = MergeRequest(("Right Hub",), "Left Hub")
    preview = await entities.preview_merge(corpus.workspace, request)
    assert len(preview.relations) == 1500
    assert sum(len(relation.merged_from) > 1 for relation in preview.relations) == 500
    await entities.merge(corpus.workspace, request, corpus.lease, record=ChangeRecord(change))
    assert len((await graph_rows(pool, corpus))["edges"]) == 1500
    await entities.undo(corpus.workspace, change, corpus.lease)
    assert differences(before, await graph_rows(pool, corpus)) == {}


async def test_an_unknown_change_is_not_found(entities: GraphEntities, corpus: Corpus) -> None:
    with pytest.raises(ChangeNotFound):
        await entities.undo(corpus.workspace, uuid4(), corpus.lease)
