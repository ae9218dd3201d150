"""What a merge makes of fields, weights and sources, and that its preview tells the same."""

import pytest

from app.retrieval.entity_contract import EntityNotFound, InvalidMerge, MergeRequest
from app.retrieval.entity_edit_contract import InvalidEntity
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.entities.plan import Edge, Node, plan_merge
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase
from tests.retrieval.lightrag.doubles import Corpus, VersionChunks, ignore, records
from tests.retrieval.lightrag.graph_rows import graph_rows


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str) -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    return version


def weights(detail: object) -> dict[tuple[str, str], float]:
    return {(found.source, found.target): found.weight for found in detail.relations}  # type: ignore[attr-defined]


async def test_distinct_evidence_adds_up(index: GraphWriter, entities: GraphEntities, corpus: Corpus) -> None:
    await ingest(index, corpus, "Ann Reed lives in Porto.", "Ann Reed loves Porto.")
    await ingest(index, corpus, "Annie Reed left Porto.")
    merged = await entities.merge(corpus.workspace, MergeRequest(("Annie Reed",), "Ann Reed"), corpus.lease)
    assert weights(merged) == {("Ann Reed", "Porto"): 3.0}
    assert len(merged.chunks) == 3


async def test_what_nobody_may_read_is_neither_merged_nor_split(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    version = await corpus.add("Ann Reed met Annie Reed in Porto.")
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    before = await graph_rows(pool, corpus)
    with pytest.raises(EntityNotFound):
        await entities.merge(corpus.workspace, MergeRequest(("Annie Reed",), "Ann Reed"), corpus.lease)
    with pytest.raises(InvalidEntity):
        await entities.split(corpus.workspace, "Ann Reed", {"A": [(version.version_id, 0)]}, corpus.lease)
    assert await graph_rows(pool, corpus) == before


async def test_the_same_chunk_counts_once(index: GraphWriter, entities: GraphEntities, corpus: Corpus) -> None:
    corpus.chat.answers["both"] = records("both in Porto.", ["Ann Reed", "Porto", "Annie Reed"])
    await ingest(index, corpus, "both in Porto.")
    merged = await entities.merge(corpus.workspace, MergeRequest(("Annie Reed",), "Ann Reed"), corpus.lease)
    assert weights(merged) == {("Ann Reed", "Porto"): 1.0}


async def test_a_preview_tells_what_the_merge_does_and_changes_nothing(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, "Ann Reed met Annie Reed in Porto.", "Ann Reed left Porto.")
    await ingest(index, corpus, "Annie Reed works in Braga.")
    request = MergeRequest(("Annie Reed", "Porto"), "Ann Reed", {"description": "longest"}, {"type": "Person"})
    before = await graph_rows(pool, corpus)
    preview = await entities.preview_merge(corpus.workspace, request)
    assert await graph_rows(pool, corpus) == before
    merged = await entities.merge(corpus.workspace, request, corpus.lease)
    assert (preview.name, preview.type, preview.description) == (merged.name, merged.type, merged.description)
    assert merged.type == "Person"
    assert preview.chunks == len(merged.chunks) == 3
    assert {(r.source, r.target): r.weight for r in preview.relations} == weights(merged)
    assert preview.avoided_self_loops == (("Ann Reed", "Annie Reed"), ("Ann Reed", "Porto"), ("Annie Reed", "Porto"))
    assert not preview.is_new


async def test_what_was_chosen_outlives_later_documents_and_removals(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus
) -> None:
    first = await ingest(index, corpus, "Ann Reed lives in Porto.")
    await ingest(index, corpus, "Annie Reed works in Braga.")
    request = MergeRequest(("Annie Reed",), "Ann Reed", values={"description": "One person.", "type": "Person"})
    await entities.merge(corpus.workspace, request, corpus.lease)
    await ingest(index, corpus, "Ann Reed sings in Faro.")
    await index.remove(corpus.workspace, first.version_id, corpus.lease)
    found = await entities.get(corpus.workspace, "Ann Reed")
    assert (found.type, found.description) == ("Person", "One person.")
    assert {end for r in found.relations for end in (r.source, r.target)} == {"Ann Reed", "Braga", "Faro"}


@pytest.mark.parametrize(
    ("strategy", "description"),
    [
        ("keep_target", "t"),
        ("keep_first", "first"),
        ("keep_last", "t"),
        ("longest", "second"),
        ("concatenate", "first<SEP>second<SEP>t"),
    ],
)
def test_each_strategy_chooses(strategy: str, description: str) -> None:
    nodes = [Node("A", "UNKNOWN", "first"), Node("B", "Person", "second")]
    request = MergeRequest(("A", "B"), "T", {"description": strategy})  # type: ignore[dict-item]
    plan = plan_merge(nodes, Node("T", "unknown", "t"), [], request, "T")
    assert (plan.type, plan.description) == ("Person", description)


def test_weights_of_shared_and_distinct_chunks() -> None:
    edges = [Edge("A", "X", 2.0, ("c1", "c2")), Edge("T", "X", 4.0, ("c2", "c3")), Edge("A", "T", 9.0, ("c9",))]
    plan = plan_merge([Node("A", "", "")], Node("T", "", ""), edges, MergeRequest(("A",), "T"), "T")
    (relation,) = plan.relations
    assert (relation.source, relation.target, relation.weight, relation.chunks) == ("T", "X", 4.0, 3)
    assert plan.self_loops == (("A", "T"),)


async def test_a_preview_refuses_what_the_merge_would(entities: GraphEntities, corpus: Corpus) -> None:
    with pytest.raises(InvalidMerge):
        await entities.preview_merge(corpus.workspace, MergeRequest((), "Ann"))
